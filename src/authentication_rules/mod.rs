//! Authentication rules of the configuration file: which clients may log in, and how.
//!
//! The model is PostgreSQL's `pg_hba.conf`: the first rule that matches the connection, the
//! database, the user and the address decides; a client that no rule matches is rejected. Without
//! rules the passwords decide (`pgwire::authentication`).
//!
//! ```toml
//! [[authentication]]
//! type = "hostssl"           # host (default), hostssl, hostnossl
//! database = ["shop"]        # default "all"; also "sameuser", "samerole"
//! user = ["ann", "+staff"]   # default "all"; "+staff": the members of a role
//! address = "10.0.0.0/8"     # default "all"; also "loopback"
//! method = "cert"            # trust, reject, scram-sha-256, cert
//! map = "people"             # of [[user_map]], for cert
//!
//! [[user_map]]
//! map = "people"
//! certificate = "ann@example.com"
//! user = "ann"
//! ```

use std::net::IpAddr;

use serde::Deserialize;

use crate::error::{Error, Result};

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuthenticationRule {
    /// The connections.
    #[serde(rename = "type", default)]
    pub kind: ConnectionKind,
    /// The databases.
    #[serde(default)]
    pub database: Names,
    /// The users.
    #[serde(default)]
    pub user: Names,
    /// The addresses of clients.
    #[serde(default)]
    pub address: AddressRange,
    /// The method.
    pub method: AuthenticationMethod,
    /// The map of certificates to users, for `cert`.
    pub map: Option<String>,
}

/// The connections of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionKind {
    /// With and without TLS.
    #[default]
    Host,
    /// With TLS.
    HostSsl,
    /// Without TLS.
    HostNoSsl,
}

/// Proof of the client that it may log in as the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthenticationMethod {
    /// Not at all.
    Trust,
    /// The client is rejected.
    Reject,
    /// By the password of its role.
    #[serde(rename = "scram-sha-256")]
    Scram,
    /// By a certificate whose common name is the user, or is mapped to it.
    Cert,
}

/// Names of databases or users, with words for several.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Names {
    /// One.
    One(String),
    /// Several.
    List(Vec<String>),
}

/// Addresses of clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum AddressRange {
    /// All.
    #[default]
    All,
    /// 127.0.0.0/8 and ::1.
    Loopback,
    /// Those whose first bits are those of this address.
    Network(IpAddr, u8),
}

/// A certificate that stands for a user.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserMapEntry {
    /// The map.
    pub map: String,
    /// The common name of the certificate.
    pub certificate: String,
    /// The user.
    pub user: String,
}

/// The rules of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthenticationRules {
    rules: Vec<AuthenticationRule>,
    maps: Vec<UserMapEntry>,
}

/// The login of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoginAttempt<'a> {
    /// Its address.
    pub(crate) address: IpAddr,
    /// True with TLS.
    pub(crate) is_encrypted: bool,
    /// The database.
    pub(crate) database: &'a str,
    /// The user.
    pub(crate) user: &'a str,
}

impl Default for Names {
    fn default() -> Names {
        Names::One("all".to_owned())
    }
}

impl Names {
    fn as_slice(&self) -> &[String] {
        match self {
            Names::One(name) => std::slice::from_ref(name),
            Names::List(names) => names,
        }
    }
}

impl TryFrom<String> for AddressRange {
    type Error = String;

    fn try_from(text: String) -> std::result::Result<AddressRange, String> {
        let bad = || format!("bad address \"{text}\": all, loopback, or a network as 10.0.0.0/8");
        match text.as_str() {
            "all" => return Ok(AddressRange::All),
            "loopback" => return Ok(AddressRange::Loopback),
            _ => {}
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| bad())?)),
            None => (text.as_str(), None),
        };
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(width);
        if bits > width {
            return Err(bad());
        }
        Ok(AddressRange::Network(address, bits))
    }
}

/// Returns the first bits of an address.
fn prefix(address: IpAddr, bits: u8) -> u128 {
    match address {
        IpAddr::V4(address) => {
            u128::from(u32::from(address).checked_shr(32 - u32::from(bits)).unwrap_or(0))
        }
        IpAddr::V6(address) => u128::from(address).checked_shr(128 - u32::from(bits)).unwrap_or(0),
    }
}

impl AddressRange {
    fn contains(self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        match self {
            AddressRange::All => true,
            AddressRange::Loopback => address.is_loopback(),
            AddressRange::Network(network, bits) => {
                network.is_ipv4() == address.is_ipv4()
                    && prefix(network, bits) == prefix(address, bits)
            }
        }
    }

    /// Returns whether only addresses of this machine are in it.
    fn is_local(self) -> bool {
        match self {
            AddressRange::All => false,
            AddressRange::Loopback => true,
            AddressRange::Network(IpAddr::V4(network), bits) => network.is_loopback() && bits >= 8,
            AddressRange::Network(IpAddr::V6(network), bits) => {
                network.is_loopback() && bits == 128
            }
        }
    }
}

impl AuthenticationRule {
    fn matches(&self, attempt: LoginAttempt<'_>, is_member: &dyn Fn(&str) -> bool) -> bool {
        let LoginAttempt { address, is_encrypted, database, user } = attempt;
        let of_kind = match self.kind {
            ConnectionKind::Host => true,
            ConnectionKind::HostSsl => is_encrypted,
            ConnectionKind::HostNoSsl => !is_encrypted,
        };
        let mut databases = self.database.as_slice().iter();
        let mut users = self.user.as_slice().iter();
        of_kind
            && self.address.contains(address)
            && databases.any(|name| match name.as_str() {
                "all" => true,
                "sameuser" => database == user,
                "samerole" => is_member(database),
                name => name == database,
            })
            && users.any(|name| match (name.as_str(), name.strip_prefix('+')) {
                ("all", _) => true,
                (_, Some(role)) => is_member(role),
                (name, None) => name == user,
            })
    }
}

impl AuthenticationRules {
    /// Checks the rules. `has_authority`: certificates of clients are verified; `is_local`: the
    /// server listens on a loopback address.
    ///
    /// # Errors
    ///
    /// If a rule cannot work, or lets clients of other machines in without a proof.
    pub(crate) fn checked(
        rules: Vec<AuthenticationRule>,
        maps: Vec<UserMapEntry>,
        (has_authority, is_local): (bool, bool),
    ) -> Result<AuthenticationRules> {
        for (at, rule) in rules.iter().enumerate() {
            let of_cert = rule.method == AuthenticationMethod::Cert;
            let is_trust = rule.method == AuthenticationMethod::Trust;
            let why = match &rule.map {
                Some(map) if !maps.iter().any(|entry| entry.map == *map) => {
                    format!("[[user_map]] has no map \"{map}\"")
                }
                Some(_) if !of_cert => "map is only for method = \"cert\"".to_owned(),
                _ if of_cert && rule.kind == ConnectionKind::HostNoSsl => {
                    "method = \"cert\" needs TLS".to_owned()
                }
                _ if of_cert && !has_authority => {
                    "method = \"cert\" needs --tls-cert, --tls-key and --tls-ca".to_owned()
                }
                _ if is_trust && !is_local && !rule.address.is_local() => {
                    "method = \"trust\" is only for address = \"loopback\"".to_owned()
                }
                _ => continue,
            };
            return Err(Error::Usage(format!("authentication rule {}: {why}", at + 1)));
        }
        Ok(AuthenticationRules { rules, maps })
    }

    /// Returns whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the first rule that matches. `is_member`: whether the user is a member of a role.
    pub(crate) fn find(
        &self,
        attempt: LoginAttempt<'_>,
        is_member: &dyn Fn(&str) -> bool,
    ) -> Option<&AuthenticationRule> {
        self.rules.iter().find(|rule| rule.matches(attempt, is_member))
    }

    /// Returns whether a certificate with a common name stands for a user.
    pub(crate) fn maps_to(&self, map: Option<&str>, certificate: &str, user: &str) -> bool {
        match map {
            None => certificate == user,
            Some(map) => self.maps.iter().any(|entry| {
                entry.map == map && entry.certificate == certificate && entry.user == user
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> std::result::Result<AddressRange, String> {
        AddressRange::try_from(text.to_owned())
    }

    #[test]
    fn address_ranges_contain_addresses_of_their_network() {
        let contains = |range_text: &str, address: &str| {
            range(range_text).unwrap().contains(address.parse().unwrap())
        };
        assert!(contains("10.0.0.0/8", "10.200.3.4"));
        assert!(contains("10.0.0.0/8", "::ffff:10.1.2.3"));
        assert!(!contains("10.0.0.0/8", "11.0.0.1"));
        assert!(!contains("10.0.0.0/8", "::1"));
        assert!(contains("192.168.1.7", "192.168.1.7"));
        assert!(!contains("192.168.1.7", "192.168.1.6"));
        assert!(contains("0.0.0.0/0", "8.8.8.8") && !contains("0.0.0.0/0", "2001:db8::1"));
        assert!(contains("2001:db8::/32", "2001:db8:ffff::9"));
        assert!(!contains("2001:db8::/32", "2001:db9::"));
        assert!(contains("::/0", "2001:db9::") && contains("all", "1.2.3.4"));
        assert!(contains("loopback", "127.3.2.1") && contains("loopback", "::1"));
        for bad in ["", "10.0.0.0/33", "::1/129", "10.0.0/8", "localhost", "10.0.0.0/x", "/8"] {
            assert!(range(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn first_matching_rule_decides() {
        #[derive(Deserialize)]
        struct File {
            authentication: Vec<AuthenticationRule>,
        }
        let file: File = toml::from_str(
            "[[authentication]]\nuser = 'mallory'\nmethod = 'reject'\n\
             [[authentication]]\ntype = 'hostssl'\ndatabase = ['shop', 'sameuser']\n\
             user = ['ann', '+staff']\naddress = '10.0.0.0/8'\nmethod = 'scram-sha-256'\n\
             [[authentication]]\naddress = 'loopback'\nmethod = 'trust'",
        )
        .unwrap();
        let rules =
            AuthenticationRules::checked(file.authentication, Vec::new(), (false, false)).unwrap();
        let method = |address: &str, is_encrypted, database, user| {
            let address = address.parse().unwrap();
            let attempt = LoginAttempt { address, is_encrypted, database, user };
            let is_member = |role: &str| role == user || (role, user) == ("staff", "ben");
            rules.find(attempt, &is_member).map(|rule| rule.method)
        };
        use AuthenticationMethod::{Reject, Scram, Trust};
        assert_eq!(method("127.0.0.1", false, "shop", "mallory"), Some(Reject));
        assert_eq!(method("127.0.0.1", false, "shop", "ann"), Some(Trust));
        assert_eq!(method("10.0.0.1", true, "shop", "ann"), Some(Scram));
        assert_eq!(method("10.0.0.1", true, "shop", "ben"), Some(Scram));
        assert_eq!(method("10.0.0.1", true, "ben", "ben"), Some(Scram));
        assert_eq!(method("10.0.0.1", true, "other", "ben"), None);
        assert_eq!(method("10.0.0.1", false, "shop", "ann"), None);
        assert_eq!(method("10.0.0.1", true, "shop", "eve"), None);
    }

    #[test]
    fn rules_that_cannot_work_are_rejected() {
        let rule = |text: &str| toml::from_str::<AuthenticationRule>(text);
        let check = |text: &str, setup| {
            AuthenticationRules::checked(vec![rule(text).unwrap()], Vec::new(), setup).is_ok()
        };
        assert!(check("method = 'trust'", (false, true)));
        assert!(!check("method = 'trust'", (false, false)));
        assert!(check("method = 'trust'\naddress = '127.0.0.0/8'", (false, false)));
        assert!(!check("method = 'trust'\naddress = '127.0.0.0/7'", (false, false)));
        assert!(!check("method = 'cert'", (false, true)));
        assert!(check("method = 'cert'", (true, true)));
        assert!(!check("method = 'cert'\nmap = 'none'", (true, true)));
        assert!(!check("method = 'cert'\ntype = 'hostnossl'", (true, true)));
        for bad in ["", "method = 'md5'", "method = 'trust'\nadress = 'all'", "type = 'local'"] {
            assert!(rule(bad).is_err(), "{bad}");
        }
    }
}
