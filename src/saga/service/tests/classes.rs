//! Which class is below which.

use super::super::classes::Classes;
use super::{Layer, OutOfFunds, OutOfStock};

fn registered() -> Classes {
    let mut classes = Classes::default();
    let funds = classes.register::<OutOfFunds>("com.acme.OutOfFunds", "com.acme.Shortage");
    let stock = classes.register::<OutOfStock>("com.acme.Shortage", "java.io.IOException");
    assert_eq!((funds, stock), (Ok(()), Ok(())));
    classes
}

#[test]
fn a_class_is_itself_and_what_is_above_it() {
    const ENGINE: &str = "org.apache.seata.saga.engine.exception.EngineExecutionException";
    let rows = [
        ("x.Boom", "x.Boom", true),
        ("x.Boom", "java.lang.RuntimeException", true),
        ("x.Boom", "java.lang.Exception", true),
        ("x.Boom", "java.lang.Throwable", true),
        ("x.Boom", "java.lang.Error", false),
        ("x.Boom", "x.Bang", false),
        ("x.Boom", "", false),
        ("java.lang.RuntimeException", "x.Boom", false),
        ("java.lang.Throwable", "java.lang.Throwable", true),
        ("java.lang.Throwable", "java.lang.Exception", false),
        ("procession.Panic", "java.lang.Error", true),
        ("procession.Panic", "java.lang.Throwable", true),
        ("procession.Panic", "java.lang.Exception", false),
        ("procession.Timeout", "java.lang.RuntimeException", true),
        ("java.net.ConnectException", "java.io.IOException", true),
        ("java.net.SocketTimeoutException", "java.io.IOException", true),
        ("java.net.ConnectException", "java.lang.RuntimeException", false),
        ("java.net.ConnectException", "java.lang.Exception", true),
        ("io.seata.x.DemoException", "org.apache.seata.x.DemoException", true),
        ("org.apache.seata.x.DemoException", "io.seata.x.DemoException", true),
        (ENGINE, "io.seata.common.exception.FrameworkException", true),
        ("io.seata.saga.engine.exception.EngineExecutionException", ENGINE, true),
        (ENGINE, "java.lang.RuntimeException", true),
        ("com.acme.OutOfFunds", "com.acme.Shortage", true),
        ("com.acme.OutOfFunds", "java.io.IOException", true),
        ("com.acme.OutOfFunds", "java.lang.RuntimeException", false),
        ("com.acme.Shortage", "com.acme.OutOfFunds", false),
    ];
    let classes = registered();
    for (class, other, expected) in rows {
        assert_eq!(classes.is(class, other), expected, "{class} is {other}");
    }
}

#[test]
fn a_class_is_known_if_anything_was_said_of_it() {
    let rows = [
        ("java.lang.Throwable", true),
        ("java.lang.Exception", true),
        ("procession.Panic", true),
        ("procession.BadResult", true),
        ("io.seata.common.exception.FrameworkException", true),
        ("com.acme.OutOfFunds", true),
        ("com.acme.Shortage", true),
        ("com.acme.Other", false),
        ("java.lang.IllegalStateException", false),
    ];
    let classes = registered();
    for (class, expected) in rows {
        assert_eq!(classes.knows(class), expected, "{class}");
    }
    // The parent of a registered class is known too.
    let mut classes = Classes::default();
    assert_eq!(
        classes.register::<OutOfFunds>("com.acme.OutOfFunds", "com.acme.Shortage"),
        Ok(())
    );
    assert!(classes.knows("com.acme.Shortage"));
}

#[test]
fn what_contradicts_is_refused() {
    let mut classes = registered();
    let twice = classes.register::<OutOfFunds>("com.acme.Broke", "java.lang.Exception");
    let name = std::any::type_name::<OutOfFunds>();
    let why = format!("error type [{name}] is registered as [com.acme.OutOfFunds] and as [com.acme.Broke]; keep one");
    assert_eq!(twice, Err(why));
    // Several types may have one class.
    let shared = classes.register::<std::fmt::Error>("com.acme.OutOfFunds", "com.acme.Shortage");
    assert_eq!(shared, Ok(()));
    type Other = Layer<std::fmt::Error>;
    let rows = [
        (
            "com.acme.OutOfFunds",
            "java.lang.Exception",
            "class [com.acme.OutOfFunds] is registered below [java.lang.Exception], and it is below \
             [com.acme.Shortage]; give both the same parent",
        ),
        (
            "java.net.ConnectException",
            "java.lang.RuntimeException",
            "class [java.net.ConnectException] is registered below [java.lang.RuntimeException], and it is below \
             [java.io.IOException]; give both the same parent",
        ),
        (
            "x.Boom",
            "x.Boom",
            "class [x.Boom] is registered below [x.Boom], which is below it; name another parent",
        ),
        (
            "java.lang.Throwable",
            "x.Boom",
            "class [java.lang.Throwable] is registered below [x.Boom], which is below it; name another parent",
        ),
    ];
    for (class, parent, why) in rows {
        assert_eq!(classes.register::<Other>(class, parent), Err(why.to_owned()));
    }
    let empty = classes
        .register::<Other>("", "java.lang.Exception")
        .expect_err("it has no name");
    assert!(empty.ends_with("has 0 bytes; give it from 1 to 512"), "{empty}");
    let long = "x".repeat(513);
    let long = classes
        .register::<Other>(&long, "java.lang.Exception")
        .expect_err("its name is too long");
    assert!(long.ends_with("has 513 bytes; give it from 1 to 512"), "{long}");
    // What was refused left nothing behind.
    assert!(!classes.knows("com.acme.Broke"));
    assert_eq!(classes.register::<Other>("x.Boom", "com.acme.OutOfFunds"), Ok(()));
    assert!(classes.is("x.Boom", "java.io.IOException"));
}

/// A circle is refused when the last of its classes is registered, and the walk above a class ends anyway.
#[test]
fn classes_make_no_circle() {
    let mut classes = Classes::default();
    assert_eq!(classes.register::<OutOfFunds>("a", "b"), Ok(()));
    assert_eq!(classes.register::<OutOfStock>("b", "c"), Ok(()));
    let circle = classes.register::<std::fmt::Error>("c", "a");
    let why = "class [c] is registered below [a], which is below it; name another parent";
    assert_eq!(circle, Err(why.to_owned()));
    assert!(classes.is("a", "java.lang.RuntimeException"));
    assert!(!classes.is("a", "d"));
}
