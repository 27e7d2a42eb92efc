import { spawn } from 'node:child_process'
import { DeckError, errorCode } from '../errors.ts'
import { durationText } from '../lifecycle/duration.ts'
import { signalGroup } from '../system/process-group.ts'
import { MAX_BYTES } from './small-file.ts'

/** Whatever a program has written may be a secret, and so may its arguments. */
const NOT_SHOWN = 'what it has written is not shown, as it may hold secrets'

/** The pids of running commands: they must not be reaped as if they were left over. */
const running: Set<number | undefined> = new Set()

export const isSecretsCommand = (pid: number) => running.has(pid)

/**
 * Runs a command to its end, without a shell and in a process group of its own. Returns what it has written to stdout.
 * @throws {DeckError} secrets-failed
 */
export async function readOutput (
  { command: [program, ...args], timeoutMs }: { command: readonly string[], timeoutMs: number },
  { cwd, env }: { cwd: string, env: Record<string, string | undefined> }
): Promise<Buffer> {
  const startedAt = performance.now()
  const child = start()
  const parts: Buffer[] = []
  let bytes = 0
  running.add(child.pid)
  child.once('exit', () => running.delete(child.pid))
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(
      () =>
        giveUp(
          failed(`${program} to end within ${durationText(timeoutMs)} (option secrets.timeoutMs)`, 'nothing by then')
        ),
      timeoutMs
    )
    // The error of node has the arguments.
    child.once('error', (error) => giveUp(notStarted(error)))
    child.once('exit', endGroup)
    child.stdout.on('data', (part) => {
      bytes += part.length
      if (bytes > MAX_BYTES) giveUp(failed(`${program} to write at most ${MAX_BYTES} bytes`, 'more'))
      else parts.push(part)
    })
    // By then its output is complete. After its exit alone some of it may be still to come.
    child.once('close', (code, signal) => {
      clearTimeout(timer)
      if (code === 0) return resolve(Buffer.concat(parts))
      reject(
        failed(`${program} to end with exit code 0`,
          `${signal ?? `exit code ${code}`} after ${
            durationText(Math.round(performance.now() - startedAt))
          }; ${NOT_SHOWN}`)
      )
    })

    function giveUp (error: DeckError) {
      clearTimeout(timer)
      endGroup()
      child.stdout.destroy()
      reject(error)
    }
  })

  function start () {
    try {
      return spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'ignore'] })
    } catch (error) {
      // E2BIG, ENOMEM: of some errors node makes an event, of others none.
      throw notStarted(error)
    }
  }

  function notStarted (error: unknown) {
    return failed(`${program} to start in ${cwd}`, String(errorCode(error)))
  }

  /** Processes that it leaves behind in its group would keep its output open. */
  function endGroup () {
    if (child.pid !== undefined) signalGroup(child.pid, 'SIGKILL')
  }
}

export function failed (expected: string, received: string) {
  return new DeckError('secrets-failed', `secrets: expected ${expected}, received ${received}`)
}
