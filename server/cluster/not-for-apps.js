/** What is the master's own business: its secret, and what systemd told it. */
export const NOT_FOR_APPS = Object.freeze(Object.fromEntries([
  'CLUSTERDECK_TOKEN', 'CLUSTERDECK_TOKEN_FILE', 'NOTIFY_SOCKET', 'WATCHDOG_USEC', 'WATCHDOG_PID', 'LISTEN_FDS', 'LISTEN_PID', 'LISTEN_FDNAMES'
].map((name) => [name, undefined])))
