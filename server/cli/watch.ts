import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.ts'
import { formatExactDuration } from '../../public/format.ts'
import { createApiClient } from './api-client.ts'
import { createInterruption } from './interruption.ts'
import { statusLine, watchedText } from './output.ts'
import { createScreen } from './screen.ts'
import type { Context } from './commands.ts'
import type { Status } from '../api/cluster.ts'
import type { Master } from './find-master.ts'

const EVERY_MS = 1000
const ANSWER_WITHIN_MS = 5000
/** By default, a master that hangs is replaced after 10 seconds. */
const FOUND_WITHIN_MS = 30_000

/** `status`: null while no master answers; `notice`: a change of the master. */
type Look = { status: Status | null, notice: string | undefined }
type View = { show: (look: Look) => void, close: () => void }

/** Shows the status each second, until it is interrupted or no master comes any more. */
export async function watchStatus (context: Context) {
  const view = viewFor(context)
  const { stop, leave } = createInterruption()
  try {
    for await (const look of pollStatus(context, stop)) view.show(look)
  } finally {
    leave()
    view.close()
  }
}

async function* pollStatus ({ master, findAgain }: Context, interrupted: AbortSignal): AsyncGenerator<Look> {
  /** the master that has answered last */
  let pid: number | null = null
  /** when it was lost */
  let lostAt: number | null = null
  const pause = () => wait(EVERY_MS, undefined, { signal: interrupted }).catch(() => {})
  for (; !interrupted.aborted; await pause()) {
    try {
      const status = await readStatus(master, interrupted)
      const notice = noticeOf(Number(status.master.pid), pid, lostAt !== null)
      pid = Number(status.master.pid)
      lostAt = null
      yield { status, notice }
    } catch (error) {
      if (interrupted.aborted) return
      if (pid === null || !isLoss(error)) throw error
      if (lostAt === null) yield { status: null, notice: `master ${pid} does not answer; looking for the next one` }
      lostAt ??= performance.now()
      if (performance.now() - lostAt > FOUND_WITHIN_MS)
        throw new DeckError('no-master', `no master has answered for ${formatExactDuration(FOUND_WITHIN_MS)}`, {
          cause: error
        })
      // The next master may have another address. Until it has written that, the old one may still be right.
      master = await findAgain().catch(() => master)
    }
  }
}

function noticeOf (pid: number, before: number | null, wasLost: boolean): string | undefined {
  if (before !== null && before !== pid) return `master ${pid} has replaced master ${before}`
  return wasLost ? `master ${pid} answers again` : undefined
}

async function readStatus (master: Master, interrupted: AbortSignal): Promise<Status> {
  const signal = AbortSignal.any([AbortSignal.timeout(ANSWER_WITHIN_MS), interrupted])
  return await createApiClient(master, { timeoutMs: ANSWER_WITHIN_MS, signal }).get('/status')
}

function isLoss (error: unknown) {
  return error instanceof DeckError && ['no-master', 'timed-out'].includes(error.code)
}

function viewFor (context: Context): View {
  if (context.options.json) return reportView(context, (status) => JSON.stringify(status))
  if (context.canDraw) return screenView(context)
  let shown = ''
  return reportView(context, (status) => {
    const line = statusLine(status)
    const isNews = line !== shown
    shown = line
    return isNews ? `${new Date().toISOString()} ${line}` : null
  })
}

/** Prints a line at a time, for files and programs. */
function reportView ({ print, tell }: Context, lineOf: (status: Status) => string | null): View {
  return { show (look) {
    if (look.notice) tell(look.notice)
    const line = look.status && lineOf(look.status)
    if (line) print(line)
  }, close () {} }
}

/** Draws on the alternate screen; at the end, the last look stays on the usual one. */
function screenView ({ stdout, print }: Context): View {
  const screen = createScreen(stdout, { onResize: drawLook })
  let lines: string[] = []
  let notice = ''
  let isOpen = false
  return { show (look) {
    if (!isOpen) screen.open()
    isOpen = true
    if (look.notice) notice = `${new Date().toISOString()} ${look.notice}`
    // While no master answers, the last status stays.
    if (look.status) lines = watchedText(look.status, Date.now()).split('\n')
    drawLook()
  }, close () {
    if (!isOpen) return
    screen.close()
    print(lines.join('\n'))
  } }

  function drawLook () {
    const foot = ['', notice || 'Ctrl-C to quit']
    const room = Math.max(1, screen.size().rows - foot.length)
    const shown = lines.length <= room
      ? lines
      : [...lines.slice(0, room - 1), `… ${lines.length - room + 1} more lines`]
    screen.draw([...shown, ...foot].map((text) => ({ text })))
  }
}
