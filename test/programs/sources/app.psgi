sub { [200, ['Content-Type' => 'text/plain'], ["hello from starman, pid $$"]] }
