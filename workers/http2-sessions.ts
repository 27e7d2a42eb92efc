import { clearTimeout, setTimeout } from 'node:timers'
import { privateField } from './private-field.ts'
import type { ServerHttp2Session as Session, ServerHttp2Stream } from 'node:http2'
import type { Server } from 'node:net'
import type { StreamArguments } from './node-internals.d.ts'
import type { createTurns } from './turns.ts'
import type { createIdleClock } from './idle-clock.ts'

/**
 * How long streams may be held back. Beyond it, one that crosses the GOAWAY is refused, which tells its client to ask
 * again. A client that is far away, or too busy to acknowledge a PING, waits no longer than it makes wait itself.
 */
const HOLD_MS = 5000
/** One quiet round is not enough: an acknowledgement overtakes requests that the client has queued. */
const QUIET_ROUNDS = 4

/**
 * Ends the HTTP/2 sessions of a server whose time has come, so that no stream is lost.  Node can send a GOAWAY, but not
 * the one that only announces the end (RFC 9113, section 6.8): from then on nghttp2 ignores whatever stream comes next,
 * and an idle session is not even read any more. So a GOAWAY must go out while no request is on the wire and no answer
 * is that would cause one. It therefore waits for the session's next stream, which its handler does not get yet, as it
 * could answer; once PINGs show that all that the client has sent is here, the session says GOAWAY, and the streams
 * that were held back get their handlers. `parts`: a session takes streams until its turn comes.
 */
export function createHttp2Sessions ({ turns }: { turns: ReturnType<typeof createTurns> }) {
  const sessions: Set<Session> = new Set()
  let isLeaving = false

  return {
    /** `server`: of HTTP/2 */
    watch (server: Server) {
      server.on('session', addSession)
    },

    count: () => sessions.size,

    /** @returns those that are open */
    streams: (): ServerHttp2Stream[] => [...sessions].flatMap(streamsOf),

    /** Every session ends with its next stream once its turn has come, future sessions too. */
    leave (withinMs: number) {
      isLeaving = true
      turns.give(sessions, withinMs)
      for (const session of sessions) endWithNextStream(session, turns)
    },

    /** Ends the sessions that have been idle for too long. */
    closeIdle (clock: ReturnType<typeof createIdleClock>) {
      for (const session of sessions) {
        if (clock.isOver(session, { isAnswering: streamsOf(session).length > 0, bytesRead: 0 })) session.close()
      }
    }
  }

  function addSession (session: Session) {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    if (isLeaving) endWithNextStream(session, turns)
  }
}

function endWithNextStream (session: Session, turns: Pick<ReturnType<typeof createTurns>, 'hasCome'>) {
  const listeners = session.rawListeners('stream')
  const held: StreamArguments[] = []
  session.removeAllListeners('stream').on('stream', takeStream)

  function takeStream (...args: StreamArguments) {
    if (held.length === 0 && !turns.hasCome(session)) return passOn(args)
    args[0].on('error', ignoreError)
    if (held.push(args) === 1) untilQuiet(session, () => held.length, closeSession)
  }

  function closeSession () {
    session.close()
    session.off('stream', takeStream)
    for (const listener of listeners) session.on('stream', listener)
    for (const args of held) {
      args[0].off('error', ignoreError)
      if (!args[0].destroyed) passOn(args)
    }
  }

  function passOn (args: StreamArguments) {
    for (const listener of listeners) Reflect.apply(listener, session, args)
  }
}

/**
 * `countArrived`: how many streams have come; `onQuiet`: called once: neither requests nor answers are on their way, or
 * it was not to be waited for any longer.
 */
function untilQuiet (session: Session, countArrived: () => number, onQuiet: () => void) {
  const until = performance.now() + HOLD_MS
  const timer = setTimeout(finishWait, HOLD_MS)
  let isOver = false
  waitRound(0, '')

  function waitRound (quiet: number, before: string) {
    const now = `${countArrived()} ${unansweredIds(session).join()}`
    const rounds = now === before ? quiet + 1 : 0
    if (rounds === QUIET_ROUNDS || performance.now() > until || !pingSession(session, () => waitRound(rounds, now)))
      finishWait()
  }

  function finishWait () {
    clearTimeout(timer)
    if (isOver) return
    isOver = true
    onQuiet()
  }
}

/** Tells whether one could be sent */
function pingSession (session: Session, onAcknowledged: () => void): boolean {
  return !session.destroyed && !session.closed && session.ping((error) => {
    if (!error) onAcknowledged()
  })
}

/** @returns the ids of its streams that are not answered to their end */
function unansweredIds (session: Session): (number | undefined)[] {
  return streamsOf(session).filter(({ writableEnded }) => !writableEnded).map(({ id }) => id)
}

/** @returns those that are open, as Node knows them */
function streamsOf (session: Session): ServerHttp2Stream[] {
  return [...privateField(session, 'state')?.streams?.values() ?? []]
}

/** A client may reset a stream before its handler can listen. */
function ignoreError () {}
