//! Runs vectors.json through redis-rs. foreign_test.go says how it is called.

mod cluster;

use redis::{Client, Cmd, ErrorKind, IntoConnectionInfo, RedisError, RedisResult, Value, cmd, pipe};
use serde_json::{Map, Value as Json};
use std::sync::atomic::{AtomicBool, Ordering};

type Failure = Box<dyn std::error::Error>;

/// While the server is away the pool says so, and may.
static AWAY: AtomicBool = AtomicBool::new(false);

/// Whatever the libraries warn of goes to standard error.
struct Log;

impl log::Log for Log {
    fn enabled(&self, metadata: &log::Metadata) -> bool {
        metadata.level() <= log::Level::Warn && !AWAY.load(Ordering::SeqCst)
    }
    fn log(&self, record: &log::Record) {
        if self.enabled(record.metadata()) {
            eprintln!("{} {}", record.level(), record.args());
        }
    }
    fn flush(&self) {}
}

fn command(vector: &Json) -> Cmd {
    let mut command = Cmd::new();
    for arg in vector["send"].as_array().expect("send is a list") {
        command.arg(arg.as_str().expect("arguments are strings"));
    }
    command
}

/// A reply in the types of JSON.
fn plain(value: Value) -> Json {
    match value {
        Value::Okay => "OK".into(),
        Value::Int(n) => n.into(),
        Value::SimpleString(text) => text.into(),
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into(),
        Value::Array(list) => list.into_iter().map(plain).collect(),
        Value::Map(pairs) => object(pairs.into_iter().map(|(k, v)| (plain(k), plain(v)))),
        other => format!("{other:?}").into(),
    }
}

fn object(pairs: impl Iterator<Item = (Json, Json)>) -> Json {
    Json::Object(
        pairs
            .map(|(k, v)| (k.as_str().unwrap_or_default().to_owned(), v))
            .collect::<Map<_, _>>(),
    )
}

/// RESP2 has a flat array in the place of a map.
fn as_map(reply: Json) -> Json {
    match reply {
        Json::Array(list) => object(list.chunks(2).map(|pair| (pair[0].clone(), pair[pair.len() - 1].clone()))),
        other => other,
    }
}

fn same(want: &Json, got: &Json) -> bool {
    match (want, got) {
        (Json::String(any), _) if any == "*" => got.is_i64() || got.is_string(),
        (Json::Array(w), Json::Array(g)) => w.len() == g.len() && w.iter().zip(g).all(|(w, g)| same(w, g)),
        (Json::Object(w), Json::Object(g)) => {
            w.len() == g.len() && w.iter().all(|(name, w)| g.get(name).is_some_and(|g| same(w, g)))
        }
        _ => want == got,
    }
}

fn check(vector: &Json, answer: RedisResult<Value>) -> Result<(), Failure> {
    let (right, got) = match (answer, vector["error"].as_str()) {
        (Err(error), Some(want)) => (error.to_string().contains(want), error.to_string()),
        (Err(error), None) => (false, error.to_string()),
        (Ok(value), want) => {
            let map = vector.get("map");
            let got = if map.is_some() { as_map(plain(value)) } else { plain(value) };
            (want.is_none() && same(map.unwrap_or(&vector["reply"]), &got), got.to_string())
        }
    };
    if right {
        Ok(())
    } else {
        Err(format!("{vector} answered {got}").into())
    }
}

fn speak(pool: &r2d2::Pool<Client>, vectors: &Json) -> Result<(), Failure> {
    let mut connection = pool.get()?;
    for vector in vectors["vectors"].as_array().ok_or("no vectors")? {
        check(vector, command(vector).query(&mut *connection))?;
    }

    let (times, admitted) = (
        vectors["pipeline"]["times"].as_u64(),
        vectors["pipeline"]["admitted"].as_u64(),
    );
    let mut pipeline = pipe();
    for _ in 0..times.ok_or("no times")? {
        pipeline.add_command(command(&vectors["pipeline"]));
    }
    let replies: Vec<Vec<i64>> = pipeline.query(&mut *connection)?;
    let count = replies.iter().filter(|reply| reply[0] == 1).count() as u64;
    if Some(replies.len() as u64) != times || Some(count) != admitted {
        return Err(format!("{count} of {} admitted, not {admitted:?}", replies.len()).into());
    }

    let transaction = vectors["transaction"].as_array().ok_or("no transaction")?;
    let mut multi = pipe();
    multi.atomic();
    for vector in transaction {
        multi.add_command(command(vector));
    }
    let replies: Vec<Value> = multi.query(&mut *connection)?;
    if replies.len() != transaction.len() {
        return Err(format!("EXEC answered {replies:?}").into());
    }
    transaction
        .iter()
        .zip(replies)
        .try_for_each(|(vector, reply)| check(vector, Ok(reply)))
}

fn must_be_refused(url: String, right: fn(&RedisError) -> bool) -> Result<(), Failure> {
    let answer = Client::open(url)?
        .get_connection()
        .and_then(|mut c| cmd("RL.TOKENBUCKET").arg("k").arg(1).arg(1).query::<Value>(&mut c));
    match answer {
        Err(error) if right(&error) => Ok(()),
        other => Err(format!("not refused: {other:?}").into()),
    }
}

fn run(args: &[String]) -> Result<(), Failure> {
    let [name, doing, file, host, port, rest @ ..] = args else {
        return Err("too few arguments".into());
    };
    let vectors: Json = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let protocol = if name == "redis-rs-resp3" { "?protocol=resp3" } else { "" };
    let database = if doing == "database" { "1" } else { "" };
    let url = |auth: &str| format!("redis://{auth}{host}:{port}/{database}{protocol}");
    let auth = rest
        .first()
        .map(|password| format!(":{}@", password.replace(' ', "%20")))
        .unwrap_or_default();
    let client = Client::open(url(&auth).into_connection_info()?)?;
    let pool = r2d2::Pool::builder().max_size(1).build(client)?;

    speak(&pool, &vectors)?;
    if doing == "restart" {
        AWAY.store(true, Ordering::SeqCst);
        println!("READY");
        std::io::stdin().read_line(&mut String::new())?;
        drop(pool.get()?); // the pool finds a dead connection and makes a new one
        AWAY.store(false, Ordering::SeqCst);
        speak(&pool, &vectors)?;
    } else if doing == "password" {
        must_be_refused(url(":wrong@"), |e| {
            e.kind() == ErrorKind::AuthenticationFailed || e.code() == Some("WRONGPASS")
        })?;
        must_be_refused(url(""), |e| e.code() == Some("NOAUTH"))?;
    }
    println!("DONE");
    Ok(())
}

fn main() {
    log::set_logger(&Log).expect("the first logger");
    log::set_max_level(log::LevelFilter::Warn);
    let args: Vec<String> = std::env::args().skip(1).collect();
    let result = match args.split_first() {
        Some((name, addresses)) if name == "redis-rs-cluster" => cluster::run(addresses),
        _ => run(&args),
    };
    if let Err(error) = result {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
