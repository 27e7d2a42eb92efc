export type ErrorCode = keyof typeof PROBLEMS

/** What can go wrong: one table of stable codes with their HTTP status and the exit code of the command line. */
export const PROBLEMS = Object.freeze({ 'invalid-config': { status: 422, exitCode: 2, title: 'Invalid configuration' },
  usage: { status: 400, exitCode: 2, title: 'Wrong usage of the command line' },
  'unknown-option': { status: 400, exitCode: 2, title: 'Unknown option' },
  'entry-not-found': { status: 422, exitCode: 2, title: 'The app entry does not exist' },
  'invalid-json': { status: 400, exitCode: 2, title: 'The body is not valid JSON' },
  'invalid-query': { status: 400, exitCode: 2, title: 'Invalid query parameter' },
  'invalid-id': { status: 400, exitCode: 2, title: 'Invalid id' },
  'bad-request': { status: 400, exitCode: 1, title: 'Bad request' },
  unauthenticated: { status: 401, exitCode: 3, title: 'Not signed in' },
  forbidden: { status: 403, exitCode: 3, title: 'Not allowed' },
  'not-found': { status: 404, exitCode: 1, title: 'Not found' },
  'method-not-allowed': { status: 405, exitCode: 1, title: 'Method not allowed' },
  'not-acceptable': { status: 406, exitCode: 1, title: 'No acceptable representation' },
  'path-refused': { status: 422, exitCode: 2, title: 'A path that may not be deployed' },
  'release-gone': { status: 409, exitCode: 1, title: 'The files of this release are gone' },
  'copy-failed': { status: 500, exitCode: 1, title: 'The copy of the app failed' },
  'secrets-failed': { status: 500, exitCode: 1, title: 'The secrets of the app could not be read' },
  'git-failed': { status: 500, exitCode: 1, title: 'git could not fetch or export the commit' },
  'build-failed': { status: 500, exitCode: 1, title: 'The build failed' },
  'build-unconfirmed': { status: 409, exitCode: 2, title: 'Nobody has said how the app is built' },
  'unshared-files': { status: 409, exitCode: 4,
    title: 'The next release would not find files that the app has written' },
  'rollout-running': { status: 409, exitCode: 4, title: 'A rollout is running' },
  'rollout-ended': { status: 409, exitCode: 4, title: 'The rollout has ended' },
  'rollout-state': { status: 409, exitCode: 4, title: 'Not possible at this step of the rollout' },
  'upgrade-running': { status: 409, exitCode: 4, title: 'An upgrade is running' },
  drifted: { status: 409, exitCode: 4, title: 'The files of the release have changed' },
  'diagnostics-running': { status: 409, exitCode: 4, title: 'Diagnostics of this worker are running' },
  'job-running': { status: 409, exitCode: 4, title: 'The job is running' },
  'job-failed': { status: 500, exitCode: 1, title: 'The job failed' },
  'run-ended': { status: 409, exitCode: 4, title: 'The run has ended' },
  'delivery-not-failed': { status: 409, exitCode: 4, title: 'The delivery has not failed' },
  starting: { status: 409, exitCode: 4, title: 'The cluster is still starting' },
  'not-possible': { status: 409, exitCode: 1, title: 'Not possible as this master runs' },
  stopping: { status: 409, exitCode: 4, title: 'The master is stopping' },
  'idempotency-key-in-use': { status: 409, exitCode: 4, title: 'The same request is running' },
  'idempotency-key-reused': { status: 422, exitCode: 2, title: 'The key of another request' },
  'cursor-expired': { status: 410, exitCode: 1, title: 'The page is no longer kept' },
  'precondition-failed': { status: 412, exitCode: 4, title: 'Changed by somebody else meanwhile' },
  'precondition-required': { status: 428, exitCode: 1, title: 'The request has to say what it is based on' },
  'payload-too-large': { status: 413, exitCode: 1, title: 'The body is too large' },
  'unsupported-media-type': { status: 415, exitCode: 1, title: 'Unsupported media type' },
  'invalid-body': { status: 422, exitCode: 2, title: 'Invalid body' },
  'invalid-argument': { status: 422, exitCode: 2, title: 'Invalid argument' },
  'rate-limited': { status: 429, exitCode: 1, title: 'Too many requests' },
  internal: { status: 500, exitCode: 1, title: 'Internal error' },
  'history-unavailable': { status: 503, exitCode: 1, title: 'The history database is unavailable' },
  'not-stored': { status: 507, exitCode: 1, title: 'The disk does not take it' },
  'port-in-use': { status: 500, exitCode: 1, title: 'The port is in use' },
  'listen-failed': { status: 500, exitCode: 1, title: 'The admin port could not be opened' },
  'data-dir-unusable': { status: 500, exitCode: 1, title: 'The data folder cannot be used' },
  'runtime-dir-unusable': { status: 500, exitCode: 1, title: 'The folder of the running decks cannot be used' },
  'bad-install': { status: 500, exitCode: 1, title: 'The installation is not complete' },
  'master-running': { status: 500, exitCode: 1, title: 'A master already runs on this data folder' },
  'start-failed': { status: 500, exitCode: 1, title: 'The app did not start' },
  'fleet-away': { status: 503, exitCode: 5, title: 'The fleet is out of reach' },
  'no-fleet': { status: 409, exitCode: 1, title: 'This host is in no fleet' },
  'app-running': { status: 409, exitCode: 4, title: 'The app runs already, in another way' },
  'app-not-running': { status: 409, exitCode: 5, title: 'The app does not run' },
  'name-taken': { status: 409, exitCode: 2, title: 'The name is taken' },
  'no-master': { status: 503, exitCode: 5, title: 'No master is running' },
  'upgrade-failed': { status: 500, exitCode: 1, title: 'The upgrade failed' },
  'diagnostics-failed': { status: 500, exitCode: 1, title: 'The diagnostics failed' },
  'alert-failed': { status: 500, exitCode: 1, title: 'The alert was not delivered' },
  'rollout-failed': { status: 500, exitCode: 1, title: 'The rollout failed' },
  'timed-out': { status: 504, exitCode: 124, title: 'Timed out' } })

/**
 * An error that its reader can act on. The message says option, expected and received where there is one.
 * `details` is plain data that may be shown to API callers (for `rollout-running`: `{ rollout: <id> }`).
 */
export class DeckError extends Error {
  override name = 'DeckError'
  code: ErrorCode
  details: Record<string, unknown>
  status: number
  exitCode: number
  title: string

  constructor (code: ErrorCode, message: string,
    { cause, details = {} }: { cause?: unknown, details?: Record<string, unknown> } = {})
  {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.details = details
    const { status, exitCode, title } = PROBLEMS[code]
    this.status = status
    this.exitCode = exitCode
    this.title = title
  }
}

/** Makes an error of what a `catch` has caught, which may be anything. */
export function toError (thrown: unknown): NodeJS.ErrnoException {
  return thrown instanceof Error ? thrown : new Error(String(thrown))
}

/** Where this program's own files are. */
const OWN_FOLDER = decodeURIComponent(new URL('..', import.meta.url).pathname)
/** What a package manager has unpacked has no lock file. */
export const HOW_TO_INSTALL = OWN_FOLDER.includes('/node_modules/')
  ? 'install clusterdeck again'
  : `run "npm ci" in ${OWN_FOLDER}`

export function isErrorCode (code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(PROBLEMS, code)
}

/** Does what may fail, where all else works without it. `otherwise`: what is returned when it throws */
export function attempt<T, U = null> (work: () => T, otherwise: U = null as U): T | U {
  try {
    return work()
  } catch {
    return otherwise
  }
}

/** Does what may fail, and tells whether it was done */
export function succeeds (work: () => void): boolean {
  return attempt(() => [work()]) !== null
}

/**
 * Does what may fail with this code, or with one of these: of ours, or of the system, such as ENOENT.
 * @param otherwise what is returned then
 */
export function unless<T, U = null> (codes: string | readonly string[], work: () => T, otherwise: U = null as U):
  | T
  | U
{
  try {
    return work()
  } catch (error) {
    if ([codes].flat().includes(String(errorCode(error)))) return otherwise
    throw error
  }
}

/** For `catch` of a promise. `answer`: in place of an error of ours */
export function onRefusal<T> (answer: (error: DeckError) => T): (error: unknown) => T {
  return (error) => {
    if (error instanceof DeckError) return answer(error)
    throw error
  }
}

/** Does what needs the database. @throws {DeckError} history-unavailable, or as `work` throws it */
export function orUnavailable<T> (work: () => T, message: string): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof DeckError) throw error
    throw new DeckError('history-unavailable', message, { cause: error })
  }
}

/** `error`: what was thrown. Returns such as ENOENT. */
export function errorCode (error: unknown): string | undefined {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined
}

/** `error`: what was thrown, by an app perhaps: anything can be */
export function errorText (error: unknown): string {
  return typeof error === 'object' && error !== null && 'message' in error ? String(error.message) : String(error)
}

/** `error`: what was thrown. Returns its code, such as ENOENT; else what it says. */
export function errorReason (error: unknown): string {
  return errorCode(error) ?? errorText(error)
}

/** Why our own code could not be loaded. Returns null: it is no such error. */
export function loadFailure (error: unknown): DeckError | null {
  return failureOfFiles(error) ?? notInstalled(error)
}

/** A master with a few workers and viewers has some hundred files open. */
export const MIN_FILES = 256

/** Says that too few files may be open. */
export function tooFewFiles (received: unknown) {
  return `expected to be allowed to open at least ${MIN_FILES} files (ulimit -n), received ${received}`
}

function failureOfFiles (error: unknown) {
  const codes = [error, error instanceof Error ? error.cause : null].map(errorCode)
  const code = codes.find((each) => each === 'EMFILE' || each === 'ENFILE')
  if (code === undefined) return null
  return new DeckError('start-failed', tooFewFiles(code), { cause: error })
}

/** npm makes the command of a clone even if nobody has installed its packages. */
function notInstalled (error: unknown) {
  const pattern = /^Cannot find (?:package|module) '([^']+)'(?: imported from |\nRequire stack:\n- )([^\n]+)/
  const [, name, importer] = pattern.exec(errorText(error)) ?? []
  if (!['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND'].includes(errorCode(error) ?? '') ||
    !importer?.startsWith(OWN_FOLDER)) return null
  return new DeckError('bad-install', `the package ${name} is not installed: ${HOW_TO_INSTALL}`, { cause: error })
}
