//! What each text comes to: its value, or the message with its column.

mod bounds;
mod drawn;

use serde_json::{Value, json};

use super::{Place, Steps, Text, Visit};

/// A visit whose call ended with a fault of this class, if there is one.
struct Faulted(Option<&'static str>);

impl Visit for Faulted {
    fn has_fault_of(&self, class: &str) -> bool {
        self.0 == Some(class)
    }

    fn sequence(&self, entity: &str, rule: &str) -> String {
        format!("{entity}-{rule}-1")
    }
}

fn root() -> Value {
    json!({
        "a": 2, "zero": 0, "minus": -7, "f": 2.0, "half": 0.5, "large": u64::MAX, "least": i64::MIN,
        "s": "Text", "blank": " \t x ", "empty": "", "t": true, "no": false, "nothing": null,
        "list": [1, 2, 3], "none": [], "nested": [[1, 2], [3]],
        "objects": [{ "x": 1, "fooResult": null }, { "x": 2, "fooResult": 5 }],
        "o": { "key": "v", "in": { "deep": 7 }, "or": 1, "order-id": 9, "1": "one" },
        "ä": "umlaut", "wide": "😀", "fooResult": { "a": { "list": [10] } },
        "loopResult": [{ "fooResult": 1 }, { "fooResult": 2 }],
        "collection": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        "nrOfInstances": 10.0, "nrOfActiveInstances": 2.0, "nrOfCompletedInstances": 6.0,
        "complexParameterMethodResult": { "age": 18, "name": "lilei" },
        "barThrowException": "true", "people": { "name": "lilei", "age": 18 },
        "foo": 1, "stockAvailable": true, "orderItems": ["i"], "data2": { "a": "A" }, "return": { "code": "SUCCESS" },
    })
}

/// The value as JSON, or what is wrong.
fn outcome(text: &str, place: Place, root: &Value) -> String {
    let text = match Text::parse(text, place) {
        Ok(text) => text,
        Err(wrong) => return format!("refused: {wrong}"),
    };
    match text.evaluate(root, &Faulted(Some("x.Boom")), &mut Steps::new()) {
        Ok(value) => value.to_string(),
        Err(failed) => failed.to_string(),
    }
}

fn check(place: Place, root: &Value, rows: &[(&str, &str)]) {
    let differing: Vec<String> = rows
        .iter()
        .map(|(text, expected)| (text, expected, outcome(text, place, root)))
        .filter(|(_, expected, found)| **expected != found)
        .map(|(text, expected, found)| format!("{text}\n  expected {expected}\n  found    {found}"))
        .collect();
    assert!(differing.is_empty(), "\n{}", differing.join("\n"));
}

/// Every shape that Seata's own definitions have.
#[test]
fn g_035_texts_of_the_data_files() {
    check(
        Place::Value,
        &root(),
        &[
            ("$.[a]", "2"),
            ("$.[fooResult]", r#"{"a":{"list":[10]}}"#),
            ("$.[barThrowException]", "\"true\""),
            ("$.[fooThrowException]", "null"),
            ("$.[people].name", "\"lilei\""),
            ("$.[people].age", "18"),
            ("$.[a]-2", "0"),
            ("$.1", "1"),
            ("$.orderItems", r#"["i"]"#),
            ("$.orderId", "null"),
            ("$.data2.a", "\"A\""),
            ("$Sequence.BUSINESS_KEY|SIMPLE", "\"BUSINESS_KEY-SIMPLE-1\""),
            ("[fooResult][a].list[0]", "\"[fooResult][a].list[0]\""),
            ("plain", "\"plain\""),
            ("", "\"\""),
            (
                "$exception{java.lang.Throwable}",
                "refused: \"$exception{..}\" has the unknown type [exception]; did you mean $Exception?",
            ),
        ],
    );
    check(Place::Value, &json!(7), &[("$.#root", "7"), ("${#root}", "7")]);
    check(
        Place::Condition,
        &root(),
        &[
            ("[a] == 1", "false"),
            ("[a] == 2", "true"),
            ("[a] == 3 || [a] == 4", "false"),
            ("foo == 1", "true"),
            ("[complexParameterMethodResult].age > 0", "true"),
            ("[complexParameterMethodResult].age <= 0", "false"),
            ("[nrOfCompletedInstances] == ([collection].size()-4)", "true"),
            ("[nrOfCompletedInstances] / [nrOfInstances] >= 0.4", "true"),
            ("[nrOfInstances] == [nrOfCompletedInstances]", "false"),
            (
                "[loopResult].?[#this[fooResult] == null].size() == 0 && [a] == 2",
                "true",
            ),
            ("stockAvailable == true", "true"),
            ("return.code == 'SUCCESS'", "true"),
            ("$Exception{x.Boom}", "true"),
            ("$Exception{java.lang.Throwable}", "false"),
            ("$Exception.x.Boom", "true"),
            ("$Exception{*}", "false"),
            ("", "refused: column 1: a value is missing before the end"),
        ],
    );
    let of_result = [
        ("#root == null", "true"),
        ("#root != null", "false"),
        ("#root == true", "false"),
        ("#root.size() > 0", "column 6: null has no method size()"),
    ];
    check(Place::Condition, &Value::Null, &of_result);
}

#[test]
fn g_035_equality_and_order() {
    check(
        Place::Condition,
        &root(),
        &[
            ("1 == 1.0", "true"),
            ("[a] == [f]", "true"),
            ("0.5 == half", "true"),
            ("1 == '1'", "false"),
            ("true == 'true'", "false"),
            ("[none] == null", "false"),
            ("nothing == missing", "true"),
            ("[empty] == null", "false"),
            ("s == 'Text'", "true"),
            ("s ne \"text\"", "true"),
            ("[list] == [list].![#this]", "true"),
            ("[list] == [list].![#this * 1.0]", "true"),
            ("[list] == [nested]", "false"),
            ("[objects][0] == [objects][1]", "false"),
            ("[objects] == [objects].?[true]", "true"),
            ("[o] == #root.o", "true"),
            // As floats they are one number.
            ("9007199254740993 == 9007199254740992.0", "false"),
            ("9007199254740993 > 9007199254740992.0", "true"),
            ("large == 18446744073709551615", "true"),
            ("large < 1e300 && least > -1e300", "true"),
            ("-1 > -1.5 and -1 < -0.5", "true"),
            ("null < 0", "true"),
            ("null <= null", "true"),
            ("null > ''", "false"),
            ("0 >= null", "true"),
            ("null < [list]", "true"),
            ("'a' < 'b'", "true"),
            ("'B' LT 'a'", "true"),
            (
                "1 < '2'",
                "column 3: 1 and \"2\" have no order; numbers have one, and texts, and null is before all",
            ),
            (
                "true >= false",
                "column 6: true and false have no order; numbers have one, and texts, and null is before all",
            ),
            (
                "1 < a < 5",
                "refused: column 7: a comparison has two sides; write for instance 1 < [a] && [a] < 5",
            ),
            ("(1 < a) == true", "true"),
            ("1 eq 1 and 1 le 1 and 2 gt 1 and 2 ge 2", "true"),
        ],
    );
}

#[test]
fn g_035_numbers() {
    check(
        Place::Condition,
        &root(),
        &[
            ("1 + 2 * 3 - 4", "3"),
            ("(1 + 2) * 3", "9"),
            ("10 - 3 - 2", "5"),
            ("7 / 2", "3"),
            ("-7 / 2", "-3"),
            ("minus % 3", "-1"),
            ("7 / 2.0", "3.5"),
            ("7.5 % 2", "1.5"),
            ("2 * half", "1.0"),
            ("- - 2", "2"),
            ("--2", "2"),
            ("+a", "2"),
            ("-a * 2", "-4"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("18446744073709551615", "18446744073709551615"),
            ("1e3", "1000.0"),
            ("1.5E-1", "0.15"),
            ("1/0", "column 2: a division by zero"),
            ("1 % zero", "column 3: a division by zero"),
            ("1.0 / 0", "column 5: a division by zero"),
            ("large + 1", "column 7: the number is out of range"),
            ("least - 1", "column 7: the number is out of range"),
            ("large * large * large", "column 7: the number is out of range"),
            ("-large", "column 1: the number is out of range"),
            ("1e308 * 10", "column 7: the number is out of range"),
            ("nothing + 1", "column 9: \"+\" takes numbers, and this is null"),
            ("1 - 'a'", "column 3: \"-\" takes numbers, and this is \"a\""),
            ("-s", "column 1: \"-\" takes numbers, and this is \"Text\""),
            ("-null", "column 1: \"-\" takes numbers, and this is null"),
            ("+true", "column 1: \"+\" takes numbers, and this is true"),
            ("[list] * 2", "column 8: \"*\" takes numbers, and this is a list of 3"),
            (
                "18446744073709551616",
                "refused: column 1: the number has 20 characters and is too large; integers end at 18446744073709551615",
            ),
            (
                "1e999",
                "refused: column 1: the number has 5 characters and is too large; integers end at 18446744073709551615",
            ),
            (
                "100L",
                "refused: column 1: \"100L\" is no number; write for instance 100, 0.5 or 1e3",
            ),
            (
                "1e",
                "refused: column 1: \"1e\" is no number; write for instance 100, 0.5 or 1e3",
            ),
        ],
    );
}

#[test]
fn g_035_logic_and_conditions() {
    check(
        Place::Condition,
        &root(),
        &[
            ("t && no || t", "true"),
            ("t or no and no", "true"),
            ("(t or no) and no", "false"),
            ("!t == no", "true"),
            ("not not t", "true"),
            ("NOT no AND TRUE", "true"),
            // What settles it comes first, so the rest is not looked at.
            ("true || 1/0 == 1", "true"),
            ("false && nothing.x", "false"),
            ("no && no && 1", "false"),
            ("true && 1", "column 6: \"&&\" takes true or false, and this is 1"),
            ("1 || true", "column 3: \"||\" takes true or false, and this is 1"),
            (
                "no or nothing",
                "column 4: \"||\" takes true or false, and this is null",
            ),
            ("!s", "column 1: \"!\" takes true or false, and this is \"Text\""),
            ("t ? 1 : 1/0", "1"),
            ("no ? 1 : no ? 2 : 3", "3"),
            ("a ? 1 : 2", "column 3: \"?\" takes true or false, and this is 2"),
            ("nothing ?: 'x'", "\"x\""),
            ("empty ?: missing ?: 3", "3"),
            ("s?:1", "\"Text\""),
            (
                "t ? 1",
                "refused: column 6: an operator or \":\" is missing before the end",
            ),
        ],
    );
}

#[test]
fn g_035_paths() {
    check(
        Place::Condition,
        &root(),
        &[
            ("o.in.deep", "7"),
            ("[o][in][deep]", "7"),
            ("o['in']['deep']", "7"),
            ("o[in].deep + 1", "8"),
            ("o[or]", "1"),
            ("o.or", "1"),
            ("o['order-id']", "9"),
            ("o['1']", "\"one\""),
            ("o['k' + 'ey']", "\"v\""),
            ("o.missing", "null"),
            ("#root['ä']", "\"umlaut\""),
            ("ä", "\"umlaut\""),
            ("list[0] + list[#root.a]", "4"),
            ("list[list[0]]", "2"),
            ("list[(f)]", "3"),
            (
                "list[f]",
                "column 5: a list of 3 has no key \"f\"; the elements of a list have numbers",
            ),
            ("nested[0][1]", "2"),
            ("[objects].?[x > 1][0].fooResult", "5"),
            ("[objects].![x]", "[1,2]"),
            ("[objects].![#this.x * #root.a]", "[2,4]"),
            ("[nested].![#this.![#this + #root.a]]", "[[3,4],[5]]"),
            ("[nested].?[#this.?[#this == 3].size() == 1]", "[[3]]"),
            ("[list].?[#this > 1].![#this * 10]", "[20,30]"),
            ("[list].?[false]", "[]"),
            ("nothing?.x", "null"),
            ("nothing?.size()", "null"),
            ("o?.key", "\"v\""),
            ("nothing.x", "column 8: null has no key \"x\""),
            ("nothing?.x.y", "column 11: null has no key \"y\""),
            ("nothing[x]", "column 8: null has no key \"x\""),
            ("nothing.size()", "column 8: null has no method size()"),
            ("nothing[0]", "column 8: null has no element 0"),
            ("a.x", "column 2: 2 has no key \"x\""),
            ("[a].b", "column 4: 2 has no key \"b\""),
            (
                "list.x",
                "column 5: a list of 3 has no key \"x\"; the elements of a list have numbers",
            ),
            (
                "list[3]",
                "column 5: the list has 3 elements, counted from 0, and none at 3",
            ),
            (
                "list[-1]",
                "column 5: the list has 3 elements, counted from 0, and none at -1",
            ),
            (
                "list[0.5]",
                "column 5: the list has 3 elements, counted from 0, and none at 0.5",
            ),
            ("o[1]", "column 2: an object of 5 has no element 1"),
            ("s[0]", "column 2: \"Text\" has no element 0"),
            ("s.?[true]", "column 2: \"Text\" has no elements; a list has"),
            ("o.![1]", "column 2: an object of 5 has no elements; a list has"),
            (
                "list.?[#this]",
                "column 5: \".?[ ]\" takes true or false, and this is 1",
            ),
            ("list.?[x == 1]", "column 8: 1 has no key \"x\""),
        ],
    );
    check(
        Place::Condition,
        &json!([4, 5]),
        &[
            ("[1]", "5"),
            ("#this[0]", "4"),
            (
                "size",
                "column 1: a list of 2 has no key \"size\"; the elements of a list have numbers",
            ),
        ],
    );
}

#[test]
fn g_035_methods() {
    check(
        Place::Condition,
        &root(),
        &[
            ("list.size()", "3"),
            ("o.size()", "5"),
            ("s.length()", "4"),
            // As Java counts.
            ("wide.length()", "2"),
            ("list.isEmpty() || !none.isEmpty() || s.isEmpty()", "false"),
            ("empty.isEmpty() && o.isEmpty() == false", "true"),
            ("list.contains(2)", "true"),
            ("list.contains(2.0)", "true"),
            ("list.contains('2')", "false"),
            ("[objects].![x].contains(2)", "true"),
            ("s.contains('ex')", "true"),
            ("o.containsKey('key') && !o.containsKey('Key')", "true"),
            ("o.get('key')", "\"v\""),
            ("o.get('Key')", "null"),
            ("list.get(1)", "2"),
            ("a.equals(2.0)", "true"),
            ("s.equals('Text')", "true"),
            ("s.equals(null)", "false"),
            ("s.startsWith('Te') && s.endsWith('xt')", "true"),
            ("s.toLowerCase() + s.toUpperCase()", "\"textTEXT\""),
            ("blank.trim()", "\"x\""),
            ("'it''s' + \" \"\"so\"\"\"", "\"it's \\\"so\\\"\""),
            ("'n' + 1 + true + null + 1.0", "\"n1truenull1.0\""),
            ("1 + 2 + 'x' + 1 + 2", "\"3x12\""),
            ("#this.s.length() + 1", "5"),
            ("a.size()", "column 2: 2 has no method size()"),
            ("list.length()", "column 5: a list of 3 has no method length()"),
            ("s.size()", "column 2: \"Text\" has no method size()"),
            ("list.trim()", "column 5: a list of 3 has no method trim()"),
            (
                "list.containsKey('x')",
                "column 5: a list of 3 has no method containsKey()",
            ),
            (
                "o.containsKey(1)",
                "column 2: containsKey() takes a text, and this is 1",
            ),
            (
                "s.startsWith(null)",
                "column 2: startsWith() takes a text, and this is null",
            ),
            ("s.contains(1)", "column 2: contains() takes a text, and this is 1"),
            (
                "list.get(9)",
                "column 5: the list has 3 elements, counted from 0, and none at 9",
            ),
            ("'x' + list", "column 5: a list of 3 cannot be joined to a text"),
            (
                "s.contains()",
                "refused: column 3: contains() takes 1 arguments, and here are 0",
            ),
            (
                "list.get(1, 2)",
                "refused: column 6: get() takes 1 arguments, and here are 2",
            ),
            (
                "s.getClass()",
                "refused: column 3: \"getClass\" is no method that an expression may call; these are: size, length, \
                 isEmpty, contains, containsKey, get, equals, startsWith, endsWith, toLowerCase, toUpperCase, trim",
            ),
            (
                "s.Size()",
                "refused: column 3: \"Size\" is no method that an expression may call; these are: size, length, \
                 isEmpty, contains, containsKey, get, equals, startsWith, endsWith, toLowerCase, toUpperCase, trim",
            ),
        ],
    );
}

#[test]
fn g_035_what_is_refused() {
    check(
        Place::Condition,
        &root(),
        &[
            (
                "T(java.lang.Runtime).getRuntime()",
                "refused: column 1: T(..) names a class, and an expression reaches no code",
            ),
            (
                "a == T(x)",
                "refused: column 6: T(..) names a class, and an expression reaches no code",
            ),
            (
                "@bean",
                "refused: column 1: \"@\" names a bean, and an expression reaches no code",
            ),
            (
                "new java.util.Date()",
                "refused: column 1: \"new\" makes an object, and an expression reaches no code",
            ),
            ("new == null", "true"),
            (
                "#other",
                "refused: column 1: there is no \"#other\"; #root and #this are there",
            ),
            ("#", "refused: column 1: there is no \"#\"; #root and #this are there"),
            (
                "a = 1",
                "refused: column 3: \"=\" sets a value, and an expression changes nothing; write == to compare",
            ),
            (
                "s matches 'x'",
                "refused: column 3: \"matches\" is no operator here; compare with startsWith, endsWith or contains",
            ),
            ("a div 2", "refused: column 3: \"div\" is no operator here; write /"),
            ("(a mod 2)", "refused: column 4: \"mod\" is no operator here; write %"),
            (
                "size()",
                "refused: column 1: \"size\" is called without a value; write for instance #this.size(..)",
            ),
            ("a b", "refused: column 3: an operator is missing before \"b\""),
            ("a ^ 2", "refused: column 3: \"^\" is no part of an expression"),
            ("{1, 2}", "refused: column 1: \"{\" is no part of an expression"),
            ("a & b", "refused: column 3: \"&\" is no part of an expression"),
            (
                "a == $b",
                "refused: column 6: \"$\" stands at the beginning of a text alone",
            ),
            (
                "[a",
                "refused: column 3: an operator or \"]\" is missing before the end",
            ),
            ("[]", "refused: column 2: a value is missing before \"]\""),
            (
                "(a",
                "refused: column 3: an operator or \")\" is missing before the end",
            ),
            ("a)", "refused: column 2: an operator is missing before \")\""),
            ("a +", "refused: column 4: a value is missing before the end"),
            ("and a", "refused: column 1: a value is missing before \"and\""),
            ("a.", "refused: column 3: a name is missing before the end"),
            ("a.1", "refused: column 3: a name is missing before \"1\""),
            (
                "a.?[t",
                "refused: column 6: an operator or \"]\" is missing before the end",
            ),
            ("'ää' + 'b", "refused: column 8: the closing ' is missing"),
            ("$.[a] == ", "refused: column 10: a value is missing before the end"),
            (
                "${[a] = 1}",
                "refused: column 7: \"=\" sets a value, and an expression changes nothing; write == to compare",
            ),
            ("${[a]", "refused: column 2: the closing } is missing"),
            (
                "${[a]} == 1",
                "refused: column 7: nothing may stand behind the closing }",
            ),
            (
                "$abc",
                "refused: column 1: a text that begins with $ is $.expression, $Exception{class} or $Sequence.entity|rule",
            ),
            (
                "$Bean.x",
                "refused: \"$Bean..\" has the unknown type [Bean]; the types are $Exception and $Sequence, and \
                 $. begins an expression",
            ),
            ("$Exception{}", "refused: column 12: the class of the fault is missing"),
            (
                "$Sequence.A|B",
                "refused: column 1: $Sequence makes an id, and a condition is true or false",
            ),
        ],
    );
    let of_values = [(
        "$Sequence.A",
        "refused: column 11: an id has an entity and a rule; write for instance $Sequence.BUSINESS_KEY|SIMPLE",
    )];
    check(Place::Value, &root(), &of_values);
}

/// A condition gives true or false, or says what it gave instead.
#[test]
fn g_035_conditions_are_tested_without_a_copy() {
    let tested = |text: &str, class: Option<&'static str>| {
        let text = Text::parse(text, Place::Condition).expect("it is one");
        text.test(&root(), &Faulted(class), &mut Steps::new())
            .map_err(|failed| failed.to_string())
    };
    assert_eq!(tested("$.[a] == 2", None), Ok(true));
    assert_eq!(tested("$Exception{x.Boom}", Some("x.Boom")), Ok(true));
    assert_eq!(tested("$Exception{x.Boom}", None), Ok(false));
    let why = "a condition takes true or false, and this is";
    assert_eq!(tested("$.[a]", None), Err(format!("column 3: {why} 2")));
    let cut = "x".repeat(60);
    let text = format!("'{}'", "x".repeat(61));
    assert_eq!(tested(&text, None), Err(format!("column 1: {why} \"{cut}…\"")));
}

/// As it stands in its file: for the picture, and for errors.
#[test]
fn an_expression_is_written_as_it_was_read() {
    let Ok(Text::Expression(expression)) = Text::parse("$.[a]  ==1", Place::Value) else {
        panic!("it is an expression");
    };
    assert_eq!(expression.to_string(), "$.[a]  ==1");
}
