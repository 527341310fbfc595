//! A mail server: ESMTP with STARTTLS and AUTH PLAIN, as `mailin` speaks it.
//!
//! Never: a mail that is taken without the password where there is one.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use mailin::response::{AUTH_OK, AUTHENTICATION_REQUIRED, INVALID_CREDENTIALS, NO_MAILBOX, OK};
use mailin::{Action, AuthMechanism, Handler, Response, Session, SessionBuilder};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use super::until;

pub(crate) const USER: &str = "peyk";
pub(crate) const PASSWORD: &str = "correct horse";

/// A mail as it came in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mail {
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
    /// Headers and body, lines apart.
    pub(crate) text: String,
    pub(crate) encrypted: bool,
    pub(crate) known: bool,
}

impl Mail {
    /// The value of a header; each stands once.
    pub(crate) fn header(&self, name: &str) -> String {
        let (head, _) = self.text.split_once("\r\n\r\n").unwrap();
        let head = head.replace("\r\n ", " ").replace("\r\n\t", " ");
        let all: Vec<_> = head
            .split("\r\n")
            .filter_map(|line| line.split_once(": "))
            .filter(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
            .collect();
        assert_eq!(all.len(), 1, "{name}: {head}");
        all.into_iter().next().unwrap()
    }

    pub(crate) fn body(&self) -> String {
        let (_, body) = self.text.split_once("\r\n\r\n").unwrap();
        // Quoted-printable, where a line is long.
        body.replace("=\r\n", "").replace("=3D", "=").replace("\r\n", "\n")
    }
}

/// What it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Well,
    /// Goes away in the middle of a conversation, having taken the mail.
    Forgetful,
    /// Knows no such mailbox.
    Refusing,
}

/// Where it is, and what its certificate is for.
const HERE: &str = "127.0.0.1";

#[derive(Clone)]
struct Shared {
    mails: Arc<Mutex<Vec<Mail>>>,
    mood: Arc<Mutex<Mood>>,
    asks_password: bool,
}

/// A mail server that runs.
pub(crate) struct MailServer {
    shared: Shared,
    pub(crate) address: SocketAddr,
    ca: tempfile::NamedTempFile,
}

impl MailServer {
    /// With STARTTLS and a password, or without either.
    pub(crate) async fn start(secure: bool) -> Self {
        let shared = Shared {
            mails: Arc::default(),
            mood: Arc::new(Mutex::new(Mood::Well)),
            asks_password: secure,
        };
        let (ca, acceptor) = certificate();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let serving = (shared.clone(), secure.then_some(acceptor));
        tokio::spawn(async move {
            loop {
                let Ok((stream, from)) = listener.accept().await else { return };
                let (shared, acceptor) = serving.clone();
                tokio::spawn(serve(stream, from.ip(), shared, acceptor));
            }
        });
        Self { shared, address, ca }
    }

    /// The settings that lead here.
    pub(crate) fn settings(&self) -> Vec<(&'static str, String)> {
        let mut all = vec![
            ("PEYK_SMTP__HOST", HERE.to_owned()),
            ("PEYK_SMTP__PORT", self.address.port().to_string()),
            ("PEYK_SMTP__FROM", "peyk@sender.example".to_owned()),
        ];
        if self.shared.asks_password {
            all.push(("PEYK_SMTP__USERNAME", USER.to_owned()));
            all.push(("PEYK_SMTP__PASSWORD", PASSWORD.to_owned()));
            all.push(("SSL_CERT_FILE", self.ca.path().display().to_string()));
        } else {
            all.push(("PEYK_SMTP__TLS", "none".to_owned()));
        }
        all
    }

    pub(crate) fn mood(&self, mood: Mood) {
        *self.shared.mood.lock().unwrap() = mood;
    }

    pub(crate) fn mails(&self) -> Vec<Mail> {
        self.shared.mails.lock().unwrap().clone()
    }

    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Mail> {
        until("mails", || async { Some(self.mails()).filter(|mails| mails.len() >= count) }).await
    }
}

fn certificate() -> (tempfile::NamedTempFile, TlsAcceptor) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new(vec![HERE.to_owned()]).unwrap();
    let leaf = leaf.signed_by(&key, &ca).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), ca.pem()).unwrap();
    let chain = vec![CertificateDer::from(leaf.der().to_vec())];
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    (file, TlsAcceptor::from(Arc::new(config)))
}

/// What one conversation has come to.
struct Talk {
    shared: Shared,
    mail: Mail,
    encrypted: Arc<AtomicBool>,
}

impl Handler for Talk {
    fn mail(&mut self, _: IpAddr, _: &str, from: &str) -> Response {
        self.mail.encrypted = self.encrypted.load(Ordering::SeqCst);
        if self.shared.asks_password && !self.mail.known {
            return AUTHENTICATION_REQUIRED;
        }
        self.mail.from = from.to_owned();
        OK
    }

    fn rcpt(&mut self, to: &str) -> Response {
        if *self.shared.mood.lock().unwrap() == Mood::Refusing {
            return NO_MAILBOX;
        }
        self.mail.to.push(to.to_owned());
        OK
    }

    fn data(&mut self, piece: &[u8]) -> io::Result<()> {
        self.mail.text.push_str(&String::from_utf8_lossy(piece));
        Ok(())
    }

    fn data_end(&mut self) -> Response {
        self.shared.mails.lock().unwrap().push(self.mail.clone());
        OK
    }

    fn auth_plain(&mut self, _: &str, user: &str, password: &str) -> Response {
        self.mail.known = (user, password) == (USER, PASSWORD);
        if self.mail.known { AUTH_OK } else { INVALID_CREDENTIALS }
    }
}

async fn serve(stream: TcpStream, ip: IpAddr, shared: Shared, acceptor: Option<TlsAcceptor>) {
    let encrypted = Arc::new(AtomicBool::new(false));
    let (mail, seen) = (Mail::default(), Arc::clone(&encrypted));
    let talk = Talk { shared: shared.clone(), mail, encrypted: seen };
    let mut builder = SessionBuilder::new("mail.example");
    if acceptor.is_some() {
        builder.enable_start_tls().enable_auth(AuthMechanism::Plain);
    }
    let mut session = builder.build(ip, talk);
    let mut stream = BufReader::new(stream);
    let greeting = session.greeting().buffer().unwrap();
    let _gone = stream.write_all(&greeting).await;
    if !converse(&mut stream, &mut session, &shared).await {
        return;
    }
    let Some(acceptor) = acceptor else { return };
    let Ok(stream) = acceptor.accept(stream.into_inner()).await else { return };
    session.tls_active();
    encrypted.store(true, Ordering::SeqCst);
    converse(&mut BufReader::new(stream), &mut session, &shared).await;
}

/// Talks until the other side is gone, or TLS is to begin: then `true`.
async fn converse<S>(
    stream: &mut BufReader<S>,
    session: &mut Session<Talk>,
    shared: &Shared,
) -> bool
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut line = Vec::new();
    loop {
        line.clear();
        match stream.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return false,
            Ok(_) => {}
        }
        let taken = shared.mails.lock().unwrap().len();
        let response = session.process(&line);
        let forgets = shared.mails.lock().unwrap().len() > taken
            && *shared.mood.lock().unwrap() == Mood::Forgetful;
        if forgets {
            return false;
        }
        if response.action == Action::NoReply {
            continue;
        }
        if stream.write_all(&response.buffer().unwrap()).await.is_err() {
            return false;
        }
        match response.action {
            Action::Close => return false,
            Action::UpgradeTls => return true,
            Action::Reply | Action::NoReply => {}
        }
    }
}
