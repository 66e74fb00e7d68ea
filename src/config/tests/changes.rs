//! Two configs, and the keys in which they differ.

use super::load;

#[test]
fn each_key_that_differs_is_named() {
    let base = "servers = [{ name = \"a\", url = \"http://a/\" }]\n\
                [[tenants]]\nname = \"t\"\n[auth.jupyterhub]\nurl = \"http://hub/hub/api\"\ntenant = \"t\"\n";
    let changed = |text: &str| load(base).changed_keys(&load(text));
    assert!(changed(base).is_empty());
    for (from, to, keys) in [
        ("http://a/", "http://b/", &["servers[0].url"][..]),
        ("name = \"t\"\n", "name = \"t\"\nburst = 7\n", &["tenants[0].burst"]),
        (
            "http://hub/hub/api\"",
            "http://hub/hub/api\"\ncache_ttl = \"5s\"",
            &["auth.jupyterhub.cache_ttl"],
        ),
        (
            "[[tenants]]",
            "http.max_body_bytes = 5000\naudit.required = true\n[[tenants]]",
            &["http.max_body_bytes", "audit.required"],
        ),
        ("[[tenants]]", "[[tenants]]\nname = \"u\"\n[[tenants]]", &["tenants"]),
        (
            "[auth.jupyterhub]",
            "[auth.oauth]\naccess_ttl = \"5s\"\n[auth.jupyterhub]",
            &["auth.oauth.access_ttl"],
        ),
        (
            "[auth.jupyterhub]",
            "[auth.jwt]\nissuer = \"https://i\"\naudience = \"x\"\n[auth.jupyterhub]",
            &["auth.jwt"],
        ),
    ] {
        assert!(base.contains(from), "{from}");
        assert_eq!(changed(&base.replace(from, to)), keys, "{to}");
    }
}
