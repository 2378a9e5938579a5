<?php
// Lets Laravel's limiters say the same again, over phpredis: random calls from a seed, while the server's clock goes
// on. limiters_test.go says how it is called; every answer is one line. The limiters send their own time.

namespace Illuminate\Redis\Limiters {
    function microtime($asFloat) { return $GLOBALS['now']; }
    function time() { return (int) $GLOBALS['now']; }
}

namespace {
    use Illuminate\Redis\Connections\PhpRedisConnection;
    use Illuminate\Redis\Limiters\ConcurrencyLimiter;
    use Illuminate\Redis\Limiters\DurationLimiter;

    spl_autoload_register(function ($class) { // some classes of Illuminate\Support are in packages of their own
        $path = str_replace('\\', '/', $class).'.php';
        foreach (['Support', 'Macroable', 'Collections'] as $package) {
            $file = __DIR__.'/usr/share/php/'.str_replace('Illuminate/Support', "Illuminate/$package", $path);
            if (is_file($file)) return require_once $file;
        }
    });

    // Funnel shows what block() does in two steps.
    class Funnel extends ConcurrencyLimiter
    {
        public function take($id) { return $this->acquire($id); }
        public function give($slot, $id) { $this->release($slot, $id); }
    }

    [, $library, $port, $seed, $calls] = $argv;
    mt_srand((int) $seed);
    $redis = new Redis();
    $redis->connect('127.0.0.1', (int) $port);
    $redis->setOption(Redis::OPT_PREFIX, 'app:');
    $laravel = new PhpRedisConnection($redis);

    $durations = array_map(fn ($terms) => new DurationLimiter($laravel, ...$terms),
        [['k0', 3, 1], ['k1', 10, 5], ['k1', 3, 2], ['k2', 1000, 300]]);
    $throttle = function () use ($durations, $laravel) {
        $limiter = $durations[mt_rand(0, 3)];
        switch (mt_rand(0, 19)) {
            case 0: return $limiter->clear();
            case 1: case 2: case 3: return [$limiter->tooManyAttempts(), $limiter->decaysAt, $limiter->remaining];
        }
        return [$limiter->acquire(), $limiter->decaysAt, $limiter->remaining, $laravel->pttl('k0'), $laravel->type('k1')];
    };

    $funnels = array_map(fn ($terms) => new Funnel($laravel, ...$terms), [['f', 3, 2], ['f', 12, 9], ['g', 1000, 60]]);
    $held = [];
    $funnel = function () use ($funnels, &$held, $laravel) {
        $limiter = $funnels[mt_rand(0, 2)];
        $id = 'id'.mt_rand(0, 9999);
        if ($held && mt_rand(0, 2) == 0) {
            $at = array_rand($held);
            [$slot, $owner] = $held[$at];
            $limiter->give($slot, mt_rand(0, 3) ? $owner : $id);
            if (mt_rand(0, 3)) unset($held[$at]);
            return [$slot, $laravel->get($slot)];
        }
        if ($slot = $limiter->take($id)) $held[] = [$slot, $id];
        return [$slot, $slot ? $laravel->pttl($slot) : null];
    };

    $call = ['laravel-throttle' => $throttle, 'laravel-funnel' => $funnel][$library];
    $now = 1700000000.0;
    for ($i = 0; $i < (int) $calls; $i++) {
        $stepMs = mt_rand(0, mt_rand(1, 900));
        $redis->rawCommand('DEBUG', 'CLOCK', 'ADVANCE', $stepMs);
        $now += $stepMs / 1000;
        if (mt_rand(0, 9) == 0) $now = floor($now);
        $answer = $call();
        echo json_encode([$answer, $redis->getLastError()]), "\n";
        $redis->clearLastError();
    }
}
