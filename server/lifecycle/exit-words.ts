/** What the kernel means by a signal that a process has brought upon itself. */
const FAULTS: Readonly<Record<string, string>> = Object.freeze({ SIGSEGV: 'it used memory that is not its own',
  SIGBUS: 'it used memory that is not there', SIGABRT: 'it aborted itself',
  SIGILL: 'it ran an instruction that the processor does not know', SIGTRAP: 'it ran into a trap of its runtime',
  SIGFPE: 'it divided by zero, or the like', SIGSYS: 'it made a system call that is forbidden to it',
  SIGPIPE: 'it wrote to a connection that was closed', SIGXCPU: 'it used more CPU time than it may',
  SIGXFSZ: 'it wrote a larger file than it may' })
/** What a shell means by these codes. */
const CODES: Readonly<Record<number, string>> = Object.freeze({ 126: 'the command could not be executed',
  127: 'the command was not found' })
/** Signals by their numbers on Linux: a shell whose command was ended by one exits with 128 more. */
const SIGNALS: Readonly<Record<number, string>> = Object.freeze({ 1: 'SIGHUP', 2: 'SIGINT', 3: 'SIGQUIT', 4: 'SIGILL',
  5: 'SIGTRAP', 6: 'SIGABRT', 7: 'SIGBUS', 8: 'SIGFPE', 9: 'SIGKILL', 11: 'SIGSEGV', 13: 'SIGPIPE', 15: 'SIGTERM',
  24: 'SIGXCPU', 25: 'SIGXFSZ', 31: 'SIGSYS' })

export function signalText (signal: string) {
  return Object.hasOwn(FAULTS, signal) ? `${signal} (${FAULTS[signal]})` : signal
}

export function codeText (code: number) {
  const signal = SIGNALS[code - 128]
  const means = CODES[code] ?? (signal && `as after ${[signal, FAULTS[signal]].filter(Boolean).join(': ')}`)
  return means ? `code ${code} (${means})` : `code ${code}`
}
