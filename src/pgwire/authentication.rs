//! Authentication of clients: SCRAM-SHA-256 if the server has a password, trust otherwise.
//!
//! The exchange is that of the `pgwire` crate (RFC 5802, 7677), over TLS with channel binding if
//! the type of the certificate allows it. The plaintext password is not stored.

use bytes::Bytes;
use pgwire::api::auth::sasl::scram::{
    SCRAM_ITERATIONS, ScramSecret, ScramServerAuth, ScramServerAuthWaitingForClientFinal,
    gen_salted_password,
};
use pgwire::messages::PgWireFrontendMessage;
use pgwire::messages::startup::{Authentication as Request, PasswordMessageFamily};

use crate::pgwire::failure::{Failure, Result, run};
use crate::pgwire::frame;
use crate::pgwire::frame::{Frame, Phase};
use crate::pgwire::login_throttle::StartupSlot;
use crate::pgwire::start_channel::StartChannel;

const PLAIN: &str = "SCRAM-SHA-256";
const BOUND: &str = "SCRAM-SHA-256-PLUS";

/// Authentication method of the server.
pub(crate) enum Authentication {
    /// Clients need no password.
    Trust,
    /// Clients must know the password.
    Scram(Box<Scram>),
}

/// SCRAM state derived from the password.
pub(crate) struct Scram {
    salt: Vec<u8>,
    salted_password: Vec<u8>,
    /// With the certificate for channel binding.
    bound: Option<ScramServerAuth>,
}

impl Authentication {
    /// Creates the method for a password, or for none. `certificate` is the server's, as PEM.
    pub(crate) fn new(password: Option<&str>, certificate: Option<&[u8]>) -> Authentication {
        let Some(password) = password else { return Authentication::Trust };
        let salt = uuid::Uuid::new_v4().as_bytes().to_vec();
        let bound = certificate.and_then(|pem| {
            let mut server = ScramServerAuth::new();
            // Channel binding is not offered for certificates without a defined hash.
            server.configure_certificate(pem).ok().map(|()| server)
        });
        Authentication::Scram(Box::new(Scram {
            salted_password: gen_salted_password(password, &salt, SCRAM_ITERATIONS),
            salt,
            bound,
        }))
    }

    /// Authenticates a client as `user`. The last message is appended to the output, but not
    /// sent. After failed logins the check is delayed ([`crate::pgwire::login_throttle`]).
    pub(crate) async fn authenticate(
        &self,
        channel: &mut StartChannel,
        user: &str,
        slot: &StartupSlot,
    ) -> Result<()> {
        if let Authentication::Scram(scram) = self {
            let result = scram.authenticate(channel, user, slot).await;
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
        channel.output().put(&Request::Ok);
        Ok(())
    }
}

impl Scram {
    async fn authenticate(
        &self,
        channel: &mut StartChannel,
        user: &str,
        slot: &StartupSlot,
    ) -> Result<()> {
        let bound = self.bound.as_ref().filter(|_| channel.is_encrypted());
        let mut mechanisms = Vec::from(bound.map(|_| BOUND.to_owned()).as_slice());
        mechanisms.push(PLAIN.to_owned());
        channel.output().put(&Request::SASL(mechanisms.clone()));
        let body = answer(channel).await?;
        let (server_first, waiting) = self.first(bound, &mechanisms, body, user)?;
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

    fn first(
        &self,
        bound: Option<&ScramServerAuth>,
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
        let secret = ScramSecret::SaltedPassword {
            salt: self.salt.clone(),
            salted_password: self.salted_password.clone(),
        };
        let unbound = ScramServerAuth::new();
        let server = bound.unwrap_or(&unbound);
        attempt(user, || server.on_client_first_message_with_secret(&data, secret))
            .map(|(message, waiting)| (Bytes::from(message), waiting))
    }
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
