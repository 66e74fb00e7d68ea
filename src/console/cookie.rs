//! The cookies of the console: a random id of a session that the gateway keeps, and before there is one a random number that
//! binds the login form to the browser it was shown in.

use super::visit::Site;

/// A cookie of the console.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cookie {
    Session,
    LoginForm,
}

impl Cookie {
    /// Name of the cookie at an address. Cookies are shared by all ports of a host, on which other gateways may be.
    fn name(self, site: &Site) -> String {
        // Browsers keep one with this prefix only if it is secure and of no other host.
        let prefix = if site.is_secure { "__Host-" } else { "" };
        let port = site.port.map(|port| format!("_{port}")).unwrap_or_default();
        let name = match self {
            Self::Session => "jmg_console",
            Self::LoginForm => "jmg_login",
        };
        format!("{prefix}{name}{port}")
    }

    /// The cookie among those of a request.
    pub(super) fn find<'a>(self, cookies: &'a str, site: &Site) -> Option<&'a str> {
        let wanted = self.name(site);
        let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value)
    }

    /// `Set-Cookie` that has the browser keep it until it is closed.
    pub(super) fn keep(self, value: &str, site: &Site) -> String {
        let secure = if site.is_secure { "; Secure" } else { "" };
        format!("{}={value}; Path=/; HttpOnly; SameSite=Strict{secure}", self.name(site))
    }

    /// `Set-Cookie` that has the browser forget it.
    pub(super) fn forget(self, site: &Site) -> String {
        format!("{}; Max-Age=0", self.keep("", site))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(is_secure: bool, port: Option<u16>) -> Site {
        Site {
            url: String::new(),
            is_secure,
            port,
        }
    }

    #[test]
    fn a_cookie_is_of_one_host_and_port_and_out_of_reach_of_scripts() {
        let local = site(false, Some(8585));
        assert_eq!(
            Cookie::Session.keep("x1", &local),
            "jmg_console_8585=x1; Path=/; HttpOnly; SameSite=Strict"
        );
        assert_eq!(
            Cookie::Session.keep("x1", &site(true, None)),
            "__Host-jmg_console=x1; Path=/; HttpOnly; SameSite=Strict; Secure"
        );
        let cookies = "a=b; jmg_console=0; jmg_console_8585=x1;c=d";
        assert_eq!(Cookie::Session.find(cookies, &local), Some("x1"));
        assert_eq!(Cookie::Session.find(cookies, &site(false, None)), Some("0"));
        assert_eq!(Cookie::Session.find(cookies, &site(true, Some(8585))), None);
    }
}
