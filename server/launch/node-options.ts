/** Options of node whose value may be a word of its own. */
const TAKES_VALUE = new Set(['-r', '--require', '--import', '--loader', '--experimental-loader', '-C', '--conditions',
  '--env-file', '--env-file-if-exists', '--title', '--icu-data-dir', '--openssl-config', '--redirect-warnings',
  '--diagnostic-dir', '--report-dir', '--report-directory', '--report-filename', '--report-signal',
  '--dns-result-order', '--unhandled-rejections', '--trace-event-categories', '--trace-event-file-pattern',
  '--max-http-header-size', '--disable-warning', '--heapsnapshot-signal', '--inspect-port', '--debug-port',
  '--cpu-prof-dir', '--cpu-prof-name', '--cpu-prof-interval', '--heap-prof-dir', '--heap-prof-name', '--tls-keylog',
  '--input-type', '--experimental-default-type', '--localstorage-file', '--watch-path', '--stack-trace-limit',
  '--tls-cipher-list', '--use-largepages', '--network-family-autoselection-attempt-timeout'])
/** They run something else than a file, or nothing. */
const NO_FILE = new Set(['-e', '--eval', '-p', '--print', '-pe', '-c', '--check', '-i', '--interactive', '--test', '-v',
  '--version', '-h', '--help', '--v8-options', '--build-snapshot', '--build-sea', '-'])
const WATCH = /^--watch(-path|-preserve-output|-kill-signal)?$/

/**
 * What stands behind `node`: its own options, the file, and the file's arguments. `more`: further options with a value,
 * of a program that takes those of node too. Returns `rest`: the file and its arguments; `runs`: the script of `node
 * --run`; `refused`: an option with which no file is run.
 */
export function parseNodeWords (words: string[],
  more: ReadonlySet<string> = new Set()
): { execArgv: string[], rest: string[], watches: boolean, runs: string | null, refused: string | null } {
  const execArgv = []
  let watches = false
  for (let at = 0; at < words.length; at++) {
    const word = words[at]
    const [name, inner] = splitOption(word)
    if (word === '--') return { execArgv, rest: words.slice(at + 1), watches, runs: null, refused: null }
    if (NO_FILE.has(name)) return { execArgv, rest: [], watches, runs: null, refused: name }
    if (!word.startsWith('-')) return { execArgv, rest: words.slice(at), watches, runs: null, refused: null }
    if (name === '--run')
      return { execArgv, rest: words.slice(at + (inner === undefined ? 2 : 1)), watches,
        runs: inner ?? words[at + 1] ?? '', refused: null }
    const hasOwnValue = inner === undefined && (TAKES_VALUE.has(name) || more.has(name))
    const own = hasOwnValue ? words.slice(at, at + 2) : [word]
    at += own.length - 1
    if (WATCH.test(name)) watches = true
    else execArgv.push(...own)
  }
  return { execArgv, rest: [], watches, runs: null, refused: null }
}

export function splitOption (word: string): [name: string, value: string | undefined] {
  const at = word.startsWith('--') ? word.indexOf('=') : -1
  return at === -1 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)]
}
