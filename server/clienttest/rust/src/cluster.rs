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

/// One answer in a line that the program prints. The error of a pipeline is the first error reply to its commands.
fn said(answer: &RedisResult<Value>) -> Json {
    let error = match answer {
        Ok(value) => return json!({ "reply": plain(value.clone()) }),
        Err(error) => error,
    };
    match error.clone().into_server_errors().as_deref() {
        Some([(_, reply), ..]) => {
            json!({ "error": format!("{} {}", reply.code(), reply.details().unwrap_or_default()), "own": false })
        }
        _ => json!({ "error": error.to_string(), "own": true }),
    }
}

/// One error is the answer to all commands of a pipeline, so nobody can tell which of them were carried out.
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
    let client = ClusterClient::new(urls.collect::<Vec<_>>())?;
    let mut connection = client.get_connection()?;
    println!("READY");
    for line in std::io::stdin().lines() {
        let commands: Vec<Vec<String>> = serde_json::from_str(&line?)?;
        let answers = send(&mut connection, &commands);
        println!("{}", answers.iter().map(said).collect::<Json>());
        // A connection of the library calls a dead leader for ever, and its pipelines follow no redirect. So its users
        // open another connection after an error.
        if answers.iter().any(Result::is_err) {
            connection = client.get_connection().unwrap_or(connection);
        }
    }
    println!("DONE");
    Ok(())
}
