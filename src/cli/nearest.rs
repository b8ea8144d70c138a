//! The name that was probably meant, among those that there are.

/// Length from which a part of a name stands for it: shorter ones are in many names.
const PART_MIN: usize = 3;

/// Returns the name that is nearest to a word, if one is near: at most a third of the word's letters are missing, added,
/// replaced or have changed places with their neighbours. Otherwise returns the only name that contains the word. Case
/// does not matter.
pub(super) fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let length = word.chars().count();
    let limit = (length / 3).max(1);
    let names: Vec<(&str, String)> = names.into_iter().map(|name| (name, name.to_lowercase())).collect();
    let near = names.iter().filter_map(|(name, lower)| {
        // The difference of two lengths is a lower bound of their distance, which costs their product.
        let is_far = lower.chars().count().abs_diff(length) > limit;
        let distance = (!is_far).then(|| strsim::osa_distance(lower, &word))?;
        (distance <= limit).then_some((distance, *name))
    });
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
        .or_else(|| containing(&word, &names))
}

fn containing<'a>(word: &str, names: &[(&'a str, String)]) -> Option<&'a str> {
    let mut found = names.iter().filter(|(_, lower)| lower.contains(word));
    let (name, _) = found.next().filter(|_| word.chars().count() >= PART_MIN)?;
    found.next().is_none().then_some(*name)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    const KINDS: [&str; 5] = ["job", "create_table", "delete_table", "shop.order", "procession.stream"];

    fn meant(word: &str) -> Option<&'static str> {
        nearest(word, KINDS)
    }

    #[test]
    fn letters_that_changed_places_are_one_mistake() {
        assert_eq!(meant("jbo"), Some("job"));
        assert_eq!(meant("craete_tabel"), Some("create_table"));
    }

    #[test]
    fn a_letter_may_be_missing_added_or_another() {
        for word in ["jo", "jobb", "jab", "JOB"] {
            assert_eq!(meant(word), Some("job"), "{word}");
        }
        assert_eq!(meant("delete_tble"), Some("delete_table"));
        assert_eq!(meant("shop,order"), Some("shop.order"));
    }

    #[test]
    fn the_nearest_is_meant() {
        assert_eq!(nearest("tables", ["tale", "table"]), Some("table"));
        // Three letters lead to create_table, too.
        assert_eq!(meant("dlete_table"), Some("delete_table"));
    }

    #[test]
    fn a_part_is_meant_if_one_name_alone_has_it() {
        assert_eq!(meant("order"), Some("shop.order"));
        assert_eq!(meant("stream"), Some("procession.stream"));
        assert_eq!(meant("table"), None, "two names have it");
        assert_eq!(meant("o"), None);
    }

    #[test]
    fn what_is_near_nothing_has_no_suggestion() {
        for word in ["invoice", "xyz", ""] {
            assert_eq!(meant(word), None, "{word}");
        }
        assert_eq!(nearest("job", []), None);
    }
}
