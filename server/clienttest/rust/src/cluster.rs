//! Runs commands through the cluster client of redis-rs. clusterforeign_test.go says how it is called.

use crate::{Failure, plain};
use redis::cluster::{ClusterClient, ClusterConnection, cluster_pipe};
use redis::{Cmd, RedisError, RedisResult, Value};
use serde_json::{Value as Json, json};

fn command(args: &[String]) -> Cmd {
    let mut command = Cmd::new();
    command.arg(args);
    command
}

/// One answer in a line that the program prints. A reply of the server has a code.
fn said(answer: &RedisResult<Value>) -> Json {
    match answer {
        Ok(value) => json!({ "reply": plain(value.clone()) }),
        Err(error) => match error.code() {
            Some(code) => json!({ "error": format!("{code} {}", error.detail().unwrap_or_default()), "own": false }),
            None => json!({ "error": error.to_string(), "own": true }),
        },
    }
}

/// A pipeline has an error for all of its commands. The client then cannot tell which of them were answered.
fn send(connection: &mut ClusterConnection, commands: &[Vec<String>]) -> Vec<RedisResult<Value>> {
    if let [only] = commands {
        return vec![command(only).query(connection)];
    }
    let mut pipeline = cluster_pipe();
    for args in commands {
        pipeline.add_command(command(args));
    }
    match pipeline.query::<Vec<Value>>(connection) {
        Ok(values) => values
            .into_iter()
            .map(|v| v.extract_error().map_err(RedisError::from))
            .collect(),
        Err(error) => commands.iter().map(|_| Err(error.clone())).collect(),
    }
}

pub fn run(addresses: &[String]) -> Result<(), Failure> {
    let urls = addresses.iter().map(|address| format!("redis://{address}/"));
    let mut connection = ClusterClient::new(urls.collect::<Vec<_>>())?.get_connection()?;
    println!("READY");
    for line in std::io::stdin().lines() {
        let commands: Vec<Vec<String>> = serde_json::from_str(&line?)?;
        let answers = send(&mut connection, &commands);
        println!("{}", answers.iter().map(said).collect::<Json>());
    }
    println!("DONE");
    Ok(())
}
