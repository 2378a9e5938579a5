<?php
// Uses phpredis in database 1, on the node that its Sentinel mode names. phpredis_test.go says how it is called; every
// answer is one line.

[, $host, $port] = $argv;

function say($answer) { echo json_encode($answer), "\n"; }

$sentinel = new RedisSentinel($host, (int) $port);
say($sentinel->ping());
[$host, $port] = $sentinel->getMasterAddrByName('mymaster');
say([$host, (int) $port]);
say($sentinel->master('mymaster')['name']);
say($sentinel->ckquorum('mymaster'));

$redis = new Redis();
$redis->connect($host, (int) $port);
say($redis->select(1));
say($redis->set('k', 'of one', ['nx', 'ex' => 60]));
say([$redis->incr('n'), $redis->incr('n', 4), $redis->dbSize()]);
say($redis->multi(Redis::PIPELINE)->get('k')->ttl('k')->select(0)->get('k')->select(1)->exec());
say($redis->rawCommand('RL.FIXED', 'limit', '60s', '3', 'FIRST'));
say($redis->select(16));
say(rtrim($redis->getLastError(), "\0")); // phpredis keeps a byte behind the text
$redis->clearLastError();
say($redis->zAdd('z', 1, 'member')); // an error is false, and no exception
say($redis->getLastError() !== null);
say($redis->flushDB());
say($redis->select(0));
say($redis->get('k'));
