//! Texts and values at random: nothing panics, every refusal has its place in the text, and integers are computed as
//! a model of a few lines computes them.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::{Expression, Place, Steps, Text};
use super::{Faulted, root};

static ROOT: LazyLock<Value> = LazyLock::new(root);

/// What is read is evaluated, or fails at a column of the text.
fn survives(text: &str, root: &Value) -> Result<(), TestCaseError> {
    let columns = 1..=text.chars().count() + 1;
    for place in [Place::Value, Place::Condition] {
        match Text::parse(text, place) {
            Ok(read) => {
                if let Err(failed) = read.evaluate(root, &Faulted(None), &mut Steps::new()) {
                    prop_assert!(columns.contains(&failed.column), "{}", failed);
                }
                let tested = read.test(root, &Faulted(None), &mut Steps::new());
                let evaluated = read.evaluate(root, &Faulted(None), &mut Steps::new());
                if let (Ok(tested), Ok(evaluated)) = (tested, evaluated) {
                    prop_assert_eq!(Value::Bool(tested), evaluated);
                }
            }
            Err(wrong) => prop_assert!(wrong.column.is_none_or(|column| columns.contains(&column)), "{}", wrong),
        }
    }
    Ok(())
}

/// Pieces of the language, in any order.
const PIECES: &str = concat!(
    r"((\[(a|list|o|nothing|objects|0|1)\]|\.(key|in|x|size\(\)|get\(1\)|trim\(\)|contains\()|\?\.x|\.\?\[|\.!\[|#this|#root",
    r"|list|o|s|a|1|2\.5|'t'|null|true|[()\[\],:?]|\?:|==|!=|<|>=|\+|-|\*|/|%|&&| or | and |not |!|\$|\{|\}|Exception|ä| ){0,16})"
);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,60}") {
        survives(&text, &ROOT)?;
    }

    #[test]
    fn texts_of_the_language_are_evaluated_or_fail(text in PIECES) {
        survives(&text, &ROOT)?;
        survives(&format!("$.{text}"), &ROOT)?;
    }

    /// Two values relate as their order says, in whatever type they are.
    #[test]
    fn order_is_one_order(left in number(), right in number()) {
        let root = json!({ "l": left, "r": right });
        let holds = |text: &str| Expression::parse(text).map(|it| it.test(&root, &mut Steps::new()));
        let [less, equal, more] = ["[l] < [r]", "[l] == [r]", "[l] > [r]"].map(|text| holds(text) == Ok(Ok(true)));
        prop_assert_eq!(u8::from(less) + u8::from(equal) + u8::from(more), 1);
        prop_assert_eq!(holds("[l] <= [r]"), Ok(Ok(!more)));
        prop_assert_eq!(holds("[r] < [l]"), Ok(Ok(more)));
        prop_assert_eq!(holds("[l] != [r]"), Ok(Ok(!equal)));
    }

    #[test]
    fn integers_are_computed_as_a_model_does(sum in sum()) {
        let found = Expression::parse(&sum.text()).map(|it| it.evaluate(&Value::Null, &mut Steps::new()).ok());
        prop_assert_eq!(found, Ok(sum.value().map(|value| json!(value))), "{}", sum.text());
    }
}

fn number() -> impl Strategy<Value = Value> {
    let around = prop_oneof![Just(0_i64), Just(1 << 53), Just(i64::MIN), Just(i64::MAX)];
    let integer = (around, -3_i64..=3).prop_map(|(number, by)| number.saturating_add(by));
    prop_oneof![
        Just(Value::Null),
        integer.clone().prop_map(Value::from),
        integer.prop_map(|number| Value::from(number as f64)),
        (0_u64..3).prop_map(|by| Value::from(u64::MAX - by)),
        (-2.0_f64..2.0).prop_map(Value::from),
    ]
}

/// A tree of integers, written with as few brackets as it needs to be the same tree.
#[derive(Clone, Debug)]
enum Sum {
    Number(i32),
    Pair(Box<Sum>, char, Box<Sum>),
}

fn sum() -> impl Strategy<Value = Sum> {
    let pair = |inner: BoxedStrategy<Sum>| {
        let operator = prop::sample::select(vec!['+', '-', '*', '/', '%']);
        (inner.clone(), operator, inner)
            .prop_map(|(left, operator, right)| Sum::Pair(left.into(), operator, right.into()))
    };
    let number = (-9_i32..100).prop_map(Sum::Number);
    number.prop_recursive(3, 8, 2, pair)
}

impl Sum {
    fn power(&self) -> u8 {
        match self {
            Self::Number(_) => 3,
            Self::Pair(_, '+' | '-', _) => 1,
            Self::Pair(..) => 2,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Pair(left, operator, right) => {
                let (left, right) = (left.within(self.power()), right.within(self.power() + 1));
                format!("{left}{operator}{right}")
            }
        }
    }

    /// As it is written beside an operator.
    fn within(&self, least: u8) -> String {
        let text = self.text();
        if self.power() < least {
            format!("({text})")
        } else {
            text
        }
    }

    /// None where it has none.
    fn value(&self) -> Option<i64> {
        match self {
            Self::Number(number) => Some((*number).into()),
            Self::Pair(left, operator, right) => {
                let (left, right) = (left.value()?, right.value()?);
                match operator {
                    '+' => left.checked_add(right),
                    '-' => left.checked_sub(right),
                    '*' => left.checked_mul(right),
                    '/' => left.checked_div(right),
                    _ => left.checked_rem(right),
                }
            }
        }
    }
}
