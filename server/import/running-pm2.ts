import { execFile } from 'node:child_process'
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { DeckError } from '../errors.ts'
import { durationText } from '../lifecycle/duration.ts'
import { homeFolder } from '../system/home-folder.ts'
import { withoutOwnVariables } from '../system/own-variables.ts'
import { isAlive } from '../system/process-identity.ts'
import { ownerOfProcess } from '../system/process-owner.ts'
import { whyPathDistrusted } from '../system/trust.ts'
import { userId } from '../system/user.ts'

const PATIENCE_MS = 15_000
const MAX_PID_FILE_BYTES = 100
/** The list has the whole environment of each process. */
const MAX_LIST_BYTES = 256 * 1024 * 1024

export type RunningPm2 = Awaited<ReturnType<typeof findPm2>>

/**
 * Where the PM2 is that runs, and whose: of one user, as far as this can be told. For root, nobody else may have put it
 * there. Returns `pid`: of its daemon.
 * @throws {DeckError} not-possible
 */
export function locatePm2 (
  { env, cwd }: { env: Record<string, string | undefined>, cwd: string }
): { home: string, pid: number, user: number } {
  const ownHome = homeFolder(env)
  const named = env.PM2_HOME || (ownHome && path.join(ownHome, '.pm2'))
  if (!named)
    throw new DeckError('not-possible',
      '--pm2: expected PM2_HOME or HOME, received neither, and this user has no home folder')
  const home = path.resolve(cwd, named)
  const file = path.join(home, 'pm2.pid')
  const { pid, user } = readPidFile(file)
  const owner = process.platform === 'linux'
    ? ownerOfProcess(pid)?.user
    : isAlive({ pid: pid || NaN, startTime: null })
    ? user
    : undefined
  if (owner === undefined)
    throw new DeckError('not-possible',
      `--pm2: expected a PM2 that runs, received none: no process is named in ${file} (PM2_HOME sets the folder)`)
  const reason = owner !== user
    ? `${file} belongs to uid ${user}, and names process ${pid} of uid ${owner}`
    : userId() === 0
    ? whyPathDistrusted(file, { owner: user })
    : null
  if (reason !== null)
    throw new DeckError('not-possible',
      `--pm2: expected a PM2 whose folder and processes are of one user, but ${reason}`)
  return { home, pid, user }
}

/**
 * Finds the PM2 of this user that runs. Its commands alone would start one.
 * @throws {DeckError} not-possible
 */
export async function findPm2 ({ env, cwd }: { env: Record<string, string | undefined>, cwd: string }) {
  const { home, pid, user } = locatePm2({ env, cwd })
  if (userId() !== -1 && user !== userId())
    throw new DeckError('not-possible',
      `--pm2: expected the PM2 of this user (uid ${userId()}), received that of uid ${user}, in ${home}: call this as that user`)
  return {
    home,

    /** The number of its daemon's process. */
    pid,

    /** Returns its processes @throws {DeckError} not-possible */
    async list (): Promise<unknown[]> {
      const output = await runPm2(['jlist'], { env, cwd })
      // PM2 may print other lines first, for example when its version has changed.
      const line = output.split('\n').find((each) => each.startsWith('[{') || each.trim() === '[]')
      try {
        const list = JSON.parse(line ?? '')
        if (Array.isArray(list)) return list
        throw new TypeError('no list')
      } catch (cause) {
        throw new DeckError('not-possible', '--pm2: expected a list from pm2 jlist, received something else', { cause })
      }
    },

    /**
     * Stops processes, which its list keeps as stopped unless they are deleted.
     * @param how what has a cron_restart is started again where it is on the list
     * @throws {DeckError} not-possible
     */
    async stop (ids: readonly number[], how: 'stop' | 'delete') {
      await runPm2([how, ...ids.map(String)], { env, cwd, patienceMs: 0 })
    }
  }
}

/** Root may read it, so it is no link and no pipe. */
function readPidFile (file: string): { pid: number, user: number } {
  let descriptor
  try {
    descriptor = openSync(file, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
    const stat = fstatSync(descriptor)
    return {
      pid: stat.isFile() && stat.size < MAX_PID_FILE_BYTES ? Number(readFileSync(descriptor, 'utf8').trim()) : NaN,
      user: stat.uid
    }
  } catch {
    // ENOENT, EACCES: there is none, or not for this user.
    return { pid: NaN, user: -1 }
  } finally {
    if (descriptor !== undefined) closeSync(descriptor)
  }
}

/** `patienceMs`: 0: as long as it takes */
function runPm2 (words: readonly string[],
  { env, cwd, patienceMs = PATIENCE_MS }: { env: Record<string, string | undefined>, cwd: string,
    patienceMs?: number }): Promise<string>
{
  return new Promise((resolve, reject) => {
    execFile('pm2', words, { env: withoutOwnVariables(env), cwd, timeout: patienceMs, killSignal: 'SIGKILL',
      maxBuffer: MAX_LIST_BYTES }, (error, stdout) => {
      if (error === null) return resolve(stdout)
      const failure = error.killed ? `nothing within ${durationText(PATIENCE_MS)}` : `exit code ${error.code}`
      const reason = error.code === 'ENOENT' ? 'no such command in PATH' : failure
      reject(
        new DeckError('not-possible', `--pm2: expected pm2 ${words[0]} to answer, received ${reason}`, { cause: error })
      )
    })
  })
}
