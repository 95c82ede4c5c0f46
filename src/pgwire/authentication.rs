//! Authentication of clients as roles.
//!
//! The [rules](crate::authentication_rules) of the configuration decide on the method. Without
//! rules it is SCRAM-SHA-256 for a role with a password, and for all roles if the server's
//! configuration has a password, trust otherwise:
//!
//! | Name of the client | No passwords | Passwords of roles only | Password of the server |
//! | --- | --- | --- | --- |
//! | role with a password | | its password | its password |
//! | `bennu` without | no password | no password | that of the server |
//! | other role without | no password | no password | refused: 28P01 |
//! | no role | is `bennu` | refused: 28000 | refused: 28P01 |
//!
//! The exchange is that of the `pgwire` crate (RFC 5802, 7677), over TLS with channel binding if
//! the type of the certificate allows it. The plaintext password is not stored.

use std::sync::Arc;

use ahash::RandomState;
use bytes::Bytes;
use pgwire::api::auth::sasl::scram::{
    SCRAM_ITERATIONS, ScramSecret, ScramServerAuth, ScramServerAuthWaitingForClientFinal,
    gen_salted_password,
};
use pgwire::messages::PgWireFrontendMessage;
use pgwire::messages::startup::{Authentication as Request, PasswordMessageFamily};
use sql::Engine;
use sql::ast::RoleAttribute;
use sql::catalog::Catalog;
use sql::catalog::access::role::RoleRecord;
use sql::catalog::name::BOOTSTRAP_ROLE;
use sql::password::PasswordVerifier;
use types::datetime::UNIX_EPOCH_SECONDS;

use crate::authentication_rules::{AuthenticationMethod, AuthenticationRules, LoginAttempt};
use crate::pgwire::failure::{Failure, Result, run};
use crate::pgwire::frame;
use crate::pgwire::frame::{Frame, Phase};
use crate::pgwire::login_throttle::StartupSlot;
use crate::pgwire::start_channel::StartChannel;

const PLAIN: &str = "SCRAM-SHA-256";
const BOUND: &str = "SCRAM-SHA-256-PLUS";

/// Authentication of the clients of a server.
pub(crate) struct Authentication {
    /// The password of the server's configuration, which is that of the bootstrap superuser.
    password: Option<SaltedPassword>,
    /// With the certificate for channel binding.
    bound: Option<ScramServerAuth>,
    rules: AuthenticationRules,
    /// Source of the salts of roles without a password.
    dummy_salts: RandomState,
}

/// A password, salted.
struct SaltedPassword {
    salt: Vec<u8>,
    salted_password: Vec<u8>,
}

impl Authentication {
    /// Creates the authentication with a password of the configuration, or none, and its rules.
    /// `certificate` is the server's, as PEM.
    pub(crate) fn new(
        password: Option<&str>,
        certificate: Option<&[u8]>,
        rules: AuthenticationRules,
    ) -> Authentication {
        let password = password.map(|password| {
            let salt = uuid::Uuid::new_v4().as_bytes().to_vec();
            let salted_password = gen_salted_password(password, &salt, SCRAM_ITERATIONS);
            SaltedPassword { salt, salted_password }
        });
        let bound = certificate.and_then(|pem| {
            let mut server = ScramServerAuth::new();
            // Channel binding is not offered for certificates without a defined hash.
            server.configure_certificate(pem).ok().map(|()| server)
        });
        Authentication { password, bound, rules, dummy_salts: RandomState::new() }
    }

    /// Authenticates a client and returns its role. The last message is appended to the output, but
    /// not sent. After failed logins the check is delayed ([`crate::pgwire::login_throttle`]).
    pub(crate) async fn authenticate(
        &self,
        channel: &mut StartChannel,
        (attempt, engine): (LoginAttempt<'_>, &Engine),
        slot: &StartupSlot,
    ) -> Result<Arc<RoleRecord>> {
        let catalog = engine.catalog();
        let user = attempt.user;
        let found = catalog.role_named(user).cloned();
        let (role, method) = match self.rules.is_empty() {
            true => self.by_passwords(&catalog, found),
            false => {
                let method = self.by_rules(&catalog, (attempt, found.as_deref()), channel)?;
                (found, method)
            }
        };
        if method == AuthenticationMethod::Scram {
            let now = engine.store().now_micros() - UNIX_EPOCH_SECONDS * 1_000_000;
            let secret = self.secret_of(role.as_deref(), user, now);
            let result = self.exchange(channel, user, (secret, slot)).await;
            match &result {
                Ok(()) => slot.record_success(user),
                Err(Failure::Fatal(error))
                    if error.sqlstate == types::sqlstate::INVALID_PASSWORD =>
                {
                    slot.record_failure(user);
                }
                Err(_) => {}
            }
            result?;
        }
        let code = types::sqlstate::INVALID_AUTHORIZATION_SPECIFICATION;
        let Some(role) = role else {
            return Err(Failure::fatal(code, format!("role \"{user}\" does not exist")));
        };
        if !role.has(RoleAttribute::Login) {
            let message = format!("role \"{user}\" is not permitted to log in");
            return Err(Failure::fatal(code, message));
        }
        channel.output().put(&Request::Ok);
        Ok(role)
    }

    /// Returns the role and the method of a client without rules.
    fn by_passwords(
        &self,
        catalog: &Catalog,
        found: Option<Arc<RoleRecord>>,
    ) -> (Option<Arc<RoleRecord>>, AuthenticationMethod) {
        let has_passwords =
            self.password.is_some() || catalog.roles().any(|role| role.verifier.is_some());
        // The first start is as easy as possible: any name is the bootstrap superuser's.
        let role = match found {
            None if !has_passwords => catalog.role(BOOTSTRAP_ROLE).cloned(),
            found => found,
        };
        let has_password = role.as_ref().is_some_and(|role| role.verifier.is_some());
        match self.password.is_some() || has_password {
            true => (role, AuthenticationMethod::Scram),
            false => (role, AuthenticationMethod::Trust),
        }
    }

    /// Returns the method of a client by the rules, after a check of its certificate.
    ///
    /// # Errors
    ///
    /// 28000 if no rule lets it in.
    fn by_rules(
        &self,
        catalog: &Catalog,
        (attempt, role): (LoginAttempt<'_>, Option<&RoleRecord>),
        channel: &StartChannel,
    ) -> Result<AuthenticationMethod> {
        let LoginAttempt { address, is_encrypted, database, user } = attempt;
        let is_member = |of: &str| {
            let of = catalog.role_named(of);
            role.zip(of)
                .is_some_and(|(role, of)| catalog.roles_of(role.number, false).contains(&of.number))
        };
        let refused = |message: String| {
            Err(Failure::fatal(types::sqlstate::INVALID_AUTHORIZATION_SPECIFICATION, message))
        };
        let encryption = if is_encrypted { "SSL encryption" } else { "no encryption" };
        let client =
            format!("host \"{address}\", user \"{user}\", database \"{database}\", {encryption}");
        let Some(rule) = self.rules.find(attempt, &is_member) else {
            return refused(format!("no authentication rule for {client}"));
        };
        match rule.method {
            AuthenticationMethod::Reject => {
                return refused(format!("authentication rule rejects connection for {client}"));
            }
            AuthenticationMethod::Cert => {
                let Some(name) = channel.certificate_name() else {
                    return refused("connection requires a valid client certificate".to_owned());
                };
                if !self.rules.maps_to(rule.map.as_deref(), &name, user) {
                    let message = format!("certificate authentication failed for user \"{user}\"");
                    return refused(message);
                }
            }
            AuthenticationMethod::Trust | AuthenticationMethod::Scram => {}
        }
        Ok(rule.method)
    }

    /// Returns the secret that a client must know. For a role that does not exist, has no password
    /// or an expired one, no client knows it, so that clients cannot tell the cases apart.
    fn secret_of(&self, role: Option<&RoleRecord>, user: &str, now: i64) -> ScramSecret {
        let is_valid = |role: &&RoleRecord| role.valid_until.is_none_or(|until| now < until);
        let valid = role.filter(is_valid);
        let verifier = valid.and_then(|role| PasswordVerifier::parse(role.verifier.as_ref()?));
        let of_server = self.password.as_ref().filter(|_| {
            valid.is_some_and(|role| role.number == BOOTSTRAP_ROLE && role.verifier.is_none())
        });
        match (verifier, of_server) {
            (Some(verifier), _) => {
                let PasswordVerifier { salt, iterations, stored_key, server_key } = verifier;
                ScramSecret::Verifier { salt, iterations, stored_key, server_key }
            }
            (None, Some(SaltedPassword { salt, salted_password })) => ScramSecret::SaltedPassword {
                salt: salt.clone(),
                salted_password: salted_password.clone(),
            },
            (None, None) => {
                let part = |number: u8| self.dummy_salts.hash_one((user, number)).to_be_bytes();
                let salt = [part(0), part(1)].concat();
                let salted_password = [part(2), part(3), part(4), part(5)].concat();
                ScramSecret::SaltedPassword { salt, salted_password }
            }
        }
    }

    async fn exchange(
        &self,
        channel: &mut StartChannel,
        user: &str,
        (secret, slot): (ScramSecret, &StartupSlot),
    ) -> Result<()> {
        let bound = self.bound.as_ref().filter(|_| channel.is_encrypted());
        let mut mechanisms = Vec::from(bound.map(|_| BOUND.to_owned()).as_slice());
        mechanisms.push(PLAIN.to_owned());
        channel.output().put(&Request::SASL(mechanisms.clone()));
        let body = answer(channel).await?;
        let (server_first, waiting) = first((bound, secret), &mechanisms, body, user)?;
        channel.output().put(&Request::SASLContinue(server_first));
        let body = answer(channel).await?;
        slot.wait_for_check(user).await;
        let server_final = attempt(user, || {
            let response = body.into_sasl_response()?;
            waiting.on_client_final_message(&response.data)
        })?;
        channel.output().put(&Request::SASLFinal(Bytes::from(server_final)));
        Ok(())
    }
}

fn first(
    (bound, secret): (Option<&ScramServerAuth>, ScramSecret),
    mechanisms: &[String],
    body: PasswordMessageFamily,
    user: &str,
) -> Result<(Bytes, ScramServerAuthWaitingForClientFinal)> {
    if let PasswordMessageFamily::Raw(bytes) = &body {
        frame::check_sasl_initial(bytes)?;
    }
    let initial = body
        .into_sasl_initial_response()
        .map_err(|error| Failure::fatal("08P01", error.to_string()))?;
    if !mechanisms.contains(&initial.auth_method) {
        let message = "client selected an invalid SASL authentication mechanism";
        return Err(Failure::fatal("08P01", message));
    }
    let data = initial.data.unwrap_or_default();
    let unbound = ScramServerAuth::new();
    let server = bound.unwrap_or(&unbound);
    attempt(user, || server.on_client_first_message_with_secret(&data, secret))
        .map(|(message, waiting)| (Bytes::from(message), waiting))
}

/// Runs a step of the exchange. The client learns of any error only that authentication failed.
fn attempt<T>(user: &str, step: impl FnOnce() -> pgwire::error::PgWireResult<T>) -> Result<T> {
    let refused = || {
        let message = format!("password authentication failed for user \"{user}\"");
        Failure::fatal(types::sqlstate::INVALID_PASSWORD, message)
    };
    match run(|| Ok(step())) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => {
            tracing::debug!(user, %error, "authentication failed");
            Err(refused())
        }
        Err(_) => Err(refused()),
    }
}

/// Sends the request and waits for the client's answer.
async fn answer(channel: &mut StartChannel) -> Result<PasswordMessageFamily> {
    channel.flush().await?;
    loop {
        match channel.take(Phase::Authentication)? {
            Some(Frame::Message(PgWireFrontendMessage::PasswordMessageFamily(body))) => {
                return Ok(body);
            }
            Some(_) => return Err(Failure::fatal("08P01", "expected SASL response")),
            None if channel.read().await? => {}
            None => return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
        }
    }
}
