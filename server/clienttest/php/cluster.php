<?php
// Runs commands through phpredis' RedisCluster. clusterforeign_test.go says how it is called. RedisCluster::rawCommand
// calls a dead node for ever. So its users map the cluster anew after an error, as each request under php-fpm does.

ini_set('display_errors', 'stderr');

function answer(?RedisCluster &$cluster, array $seeds, array $args): array {
    try {
        $cluster ??= new RedisCluster(null, $seeds);
        $reply = $cluster->rawCommand($args[1], ...$args); // by key
        $error = $cluster->getLastError();
        if ($error === null) return ['reply' => $reply];
        $cluster = null;
        return ['error' => rtrim($error, "\0"), 'own' => false];
    } catch (RedisClusterException $e) {
        $cluster = null;
        return ['error' => $e->getMessage(), 'own' => true];
    }
}

$seeds = array_slice($argv, 2);
$cluster = new RedisCluster(null, $seeds);
echo "READY\n";
while (($line = fgets(STDIN)) !== false) {
    $answers = [];
    foreach (json_decode($line) as $args) $answers[] = answer($cluster, $seeds, $args);
    echo json_encode($answers), "\n";
}
$cluster?->close();
echo "DONE\n";
