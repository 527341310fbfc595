//! Letters to the owners of endpoints, over SMTP.
//!
//! In: what the engine gathered of a suspension. Out: a plain text, handed to the mail server of
//! the settings. The same letter has the same `Message-ID` however often it is sent, so that
//! whoever gets it twice can tell.
//! Never: anything from outside in a header, or an address in an error.

mod clean;
mod words;

use std::error::Error as _;
use std::time::{Duration, UNIX_EPOCH};

use domain::email::EmailAddress;
use domain::idempotency::notice_random;
use engine::mail::{AlertLetter, Letter, MailFault, Mailer, Mailing};
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, Message, MessageBuilder, SinglePart};
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use resilience::Timestamp;

use crate::config::smtp::{Smtp, SmtpTls};

/// One step of the conversation takes no longer.
const STEP_MAX: Duration = Duration::from_secs(15);
/// Nor all of it.
const TALK_MAX: Duration = Duration::from_secs(45);
/// Answers that are about one letter and will be the same the next time: no such mailbox, and its
/// kin.
const REFUSALS: std::ops::RangeInclusive<u16> = 550..=553;
/// Answers that are about whoever sends: no leave, or the wrong password.
const NO_LEAVE: std::ops::RangeInclusive<u16> = 530..=538;

/// Sends letters through one mail server.
pub(crate) struct SmtpMailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    /// Behind the `@` of message ids.
    domain: String,
    installation: [u8; 16],
}

impl SmtpMailer {
    /// Nothing is dialled before the first letter.
    pub(crate) fn new(settings: &Smtp, installation: [u8; 16]) -> Result<Self, String> {
        let wrong = |fault: Error| format!("TLS to the mail server cannot be set up: {fault}");
        let parameters = || TlsParameters::new_rustls(settings.host.clone()).map_err(wrong);
        let tls = match settings.tls {
            SmtpTls::StartTls => Tls::Required(parameters()?),
            SmtpTls::Tls => Tls::Wrapper(parameters()?),
            SmtpTls::None => Tls::None,
        };
        let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&settings.host)
            .port(settings.port)
            .tls(tls)
            .timeout(Some(STEP_MAX));
        if let Some((user, password)) = &settings.credentials {
            let password = password.reveal().to_owned();
            builder = builder.credentials(Credentials::new(user.clone(), password));
        }
        let from = mailbox(&settings.from).ok_or("`smtp.from` cannot be written from")?;
        let domain = settings.from.domain().to_owned();
        Ok(Self { transport: builder.build(), from, domain, installation })
    }

    fn message(&self, letter: &Letter) -> Option<Message> {
        let builder = self.builder(letter.number, letter.at).to(mailbox(&letter.to)?);
        Self::finish(builder.subject(words::subject(letter)), words::text(letter))
    }

    fn alert(&self, letter: AlertLetter) -> Option<Message> {
        let to = letter.to.iter().map(mailbox).collect::<Option<Vec<_>>>()?;
        let builder =
            to.into_iter().fold(self.builder(letter.number, letter.at), |letter, to| letter.to(to));
        Self::finish(builder.subject(letter.subject), letter.text)
    }

    /// A letter under its number: the same whenever it is sent.
    fn builder(&self, number: u64, at: Timestamp) -> MessageBuilder {
        let random = notice_random(&self.installation, number);
        let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let since_epoch = u64::try_from(at.as_micros()).unwrap_or(0);
        Message::builder()
            .message_id(Some(format!("<peyk-{id}@{}>", self.domain)))
            .date(UNIX_EPOCH + Duration::from_micros(since_epoch))
            .from(self.from.clone())
    }

    fn finish(builder: MessageBuilder, text: String) -> Option<Message> {
        let automatic = HeaderName::new_from_ascii_str("Auto-Submitted");
        builder
            .raw_header(HeaderValue::new(automatic, "auto-generated".to_owned()))
            .singlepart(SinglePart::plain(text))
            .ok()
    }

    async fn post(&self, message: Option<Message>) -> Result<(), MailFault> {
        let Some(message) = message else {
            return Err(MailFault::Refused("its address cannot be written to".to_owned()));
        };
        match tokio::time::timeout(TALK_MAX, self.transport.send(message)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(fault(&error)),
            Err(_) => Err(MailFault::Down("it takes too long".to_owned())),
        }
    }
}

impl Mailer for SmtpMailer {
    fn send(&self, letter: Letter) -> Mailing<'_> {
        Box::pin(self.post(self.message(&letter)))
    }

    fn send_alert(&self, letter: AlertLetter) -> Mailing<'_> {
        Box::pin(self.post(self.alert(letter)))
    }
}

fn mailbox(address: &EmailAddress) -> Option<Mailbox> {
    Some(Mailbox::new(None, address.as_str().parse().ok()?))
}

/// What an error means. Of an answer only the code is told: its text may name the address.
fn fault(error: &Error) -> MailFault {
    let Some(code) = error.status().map(u16::from) else {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        let kind = match error {
            error if error.is_timeout() => "no answer in time",
            error if error.is_tls() => "no TLS",
            _ => "no connection",
        };
        return MailFault::Down(format!("{kind}{cause}"));
    };
    let text = format!("the mail server answered {code}");
    match code {
        code if REFUSALS.contains(&code) => MailFault::Refused(text),
        // 421: it is closing down.
        code if code == 421 || NO_LEAVE.contains(&code) => MailFault::Down(text),
        _ => MailFault::Later(text),
    }
}
