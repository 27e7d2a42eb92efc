run ->(_env) { [200, { 'content-type' => 'text/plain' }, ["hello from puma, pid #{Process.pid}"]] }
