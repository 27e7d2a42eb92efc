import { setTimeout as wait } from 'node:timers/promises'
import { otherEndOf } from './connection-owner.ts'
import { isAlive, pidNamespace, type ProcessIdentity } from './process-identity.ts'
import type { Socket } from 'node:net'

/**
 * Who on this machine may be told a secret, such as a token: a master, wherever it listens. Its port may be another
 * user's once it has ended.
 */
export type Recipient = {
  /** the user whose deck it is, where that is another one than root and the user of this process */
  owner?: number,
  /** the master, and its keeper if it has one, which starts the next master at the same address */
  processes: readonly ProcessIdentity[],
  /** where their numbers hold, if the master has said that */
  pidNamespace?: string | null
}

const LOOK_EVERY_MS = 5
/** A master that hangs takes no connection until its keeper has replaced it. */
const TAKEN_WITHIN_MS = 20_000
/** The kernel's table is read in parts, between which a row may move. */
const LOOKS_FOR_A_ROW = 5
/** The system says this to whoever has begun to send. */
const CLOSED = 'ECONNRESET'

/** @returns why nobody is there who may be told; null: somebody may be */
export function whyAbsent (recipient: Recipient): string | null {
  return recipient.processes.some(isAlive) || isInOtherNamespace(recipient)
    ? null
    : `its master (pid ${recipient.processes[0].pid}) has ended`
}

/** A container's, whose processes have other numbers there. */
export function isInOtherNamespace ({ pidNamespace: theirs = null }: Recipient) {
  return theirs !== null && theirs !== pidNamespace()
}

/**
 * Why the process that has taken a connection may not be told: asked of the very connection, as any other one may be
 * taken by somebody else. `socket`: connected; nothing was sent over it yet; `isPinned`: it has shown the
 * certificate of the master. Returns null: it may be told.
 */
export async function whyNotTold (socket: Socket, recipient: Recipient,
  { isPinned, lookUp = otherEndOf, now = () => performance.now() }: { isPinned: boolean, lookUp?: typeof otherEndOf,
    now?: () => number }): Promise<string | null>
{
  const since = now()
  for (let missing = 0; !socket.destroyed; await wait(LOOK_EVERY_MS)) {
    const found = lookUp(socket)
    if (found === 'elsewhere')
      return isPinned ? null : 'it is on another machine, and shows no certificate of the master'
    // By the processes alone, then; but numbers of another namespace say nothing here.
    if (found === 'untold')
      return isPinned || !isInOtherNamespace(recipient) ? null : 'this system does not tell who listens there'
    if (found === 'gone') {
      missing += 1
      if (missing === LOOKS_FOR_A_ROW) return CLOSED
    } else if (found !== 'not taken') {
      return isTrusted(found, recipient) ? null : `a process of another user (uid ${found}) answers there`
    } else if (now() - since > TAKEN_WITHIN_MS) {
      return `nobody has taken the connection within ${TAKEN_WITHIN_MS} ms`
    }
  }
  return CLOSED
}

function isTrusted (uid: number, { owner }: Recipient) {
  return uid === 0 || uid === process.geteuid?.() || uid === owner
}
