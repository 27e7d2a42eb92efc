import { rm } from 'node:fs/promises'
import path from 'node:path'
import { DeckError, errorReason } from '../errors.ts'
import { storeJson, syncFolder } from './json-file.ts'

export type KeptFile = ReturnType<typeof createKeptFile>

const TRY_AGAIN_MS = 5000

/**
 * Keeps what is saved last in a file, over a power cut. Where the disk does not take it, it is tried again until it
 * does. `onProblem`: why it does not; null: it has all.
 */
export function createKeptFile (file: string,
  { onProblem = () => {}, tryAgainMs = TRY_AGAIN_MS }: { onProblem?: (reason: string | null) => void,
    tryAgainMs?: number } = {})
{
  /** Until the disk has it. */
  let unsaved: { content: unknown } | null = null
  let problem: string | null = null
  /** Writes come one after the other. */
  let turn: Promise<unknown> = Promise.resolve()
  let timer: NodeJS.Timeout | null = null
  let isClosed = false

  return {
    /** Begins to write it, and waits for nothing. `content`: null: there is to be no file. */
    save (content: unknown) {
      if (isClosed) return
      unsaved = { content }
      writeInTurn().catch(() => {})
    },

    /** Resolves once the disk has what was saved last. @throws {DeckError} not-stored */
    async stored (): Promise<void> {
      if (unsaved) await writeInTurn()
    },

    /** Whether the disk has what was saved last. */
    isStored: () => unsaved === null,

    /** From here on it is another one's. Resolves once nothing is written any more. */
    async close (): Promise<void> {
      isClosed = true
      if (timer) clearTimeout(timer)
      await turn
    }
  }

  function writeInTurn () {
    const written = turn.then(write)
    turn = written.catch(() => {})
    return written
  }

  async function write () {
    const now = unsaved
    // Whoever came later has written it already.
    if (now === null) return
    try {
      if (now.content === null) await remove()
      else await storeJson(file, now.content)
    } catch (error) {
      const reason = errorReason(error)
      tell(reason)
      if (!isClosed)
        timer ??= setTimeout(() => {
          timer = null
          writeInTurn().catch(() => {})
        }, tryAgainMs).unref()
      throw new DeckError('not-stored',
        `this is done, but cannot be written down (${reason}: ${file}): a next start does not know of it, unless the disk takes it by then. It is tried again every ${
          tryAgainMs / 1000
        } s`, { cause: error })
    }
    if (unsaved === now) unsaved = null
    tell(null)
  }

  async function remove () {
    await rm(file, { force: true })
    await syncFolder(path.dirname(file))
  }

  function tell (reason: string | null) {
    if (problem === reason) return
    problem = reason
    onProblem(reason)
  }
}
