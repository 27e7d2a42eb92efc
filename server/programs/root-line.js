import { writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { constants } from 'node:os'
import { oneLine } from '../system/one-line.js'
import { loadPosix } from '../system/posix.js'
import { ownerOfProcess } from '../system/process-owner.js'
import { loadSystemCalls } from './system-calls.js'

/**
 * Between a command of root and the same command as another user, who may take the place of the latter: root does no more than what this user could
 * do without Yama, or what whoever called it wants.
 * @typedef {{ pid: number, fd: number } | { stop: true }} Request
 * @typedef {NonNullable<ReturnType<typeof lineToRoot>>} LineToRoot
 */

const [ANSWERS, REQUESTS] = [3, 4]
/** Says that there is such a line; commands of others do not get it. */
export const ROOT_LINE = 'CLUSTERDECK_ROOT_LINE'
const { EIO, EPERM } = constants.errno

/**
 * A copy of a socket on which a process of one user listens. Root would get each descriptor of each process.
 * @param {{ pid: number, fd: number, user: number }} wanted @returns {number} below 0: an error number
 */
export function copyListener ({ pid, fd, user }) {
  const [calls, posix] = [loadSystemCalls(), loadPosix()]
  const copy = calls?.descriptorOf(pid, fd, () => ownerOfProcess(pid)?.user === user) ?? -EIO
  // What has become another program meanwhile, with the rights of another user, has no such socket at that place.
  if (copy < 0 || posix?.isListening(copy)) return copy
  calls?.close(copy)
  return -EPERM
}

/**
 * The end of root.
 * @param {{ user: number, stop: () => Promise<string | null> }} how  `stop`: ends what is taken over; why it could not
 */
export function openRootLine ({ user, stop }) {
  const calls = loadSystemCalls()
  const [own, theirs] = calls?.socketPair() ?? []
  if (!calls || own === undefined || theirs === undefined) return null
  return {
    theirs,

    /** @param {import('node:child_process').ChildProcess} child  with `theirs` and a pipe behind its standard streams */
    serve (child) {
      calls.close(theirs)
      createInterface(/** @type {import('node:stream').Readable} */ (child.stdio[REQUESTS])).on('line', async (line) => {
        const request = requestIn(line)
        if ('stop' in request) return calls.send(own, JSON.stringify({ failed: await stop() }))
        const copy = copyListener({ ...request, user })
        calls.send(own, JSON.stringify({ errno: Math.min(0, copy) }), copy < 0 ? undefined : copy)
        if (copy >= 0) calls.close(copy)
      })
    },

    close () { calls.close(own) }
  }
}

/** @param {string} line of a stranger @returns {Request} */
function requestIn (line) {
  try {
    const { pid, fd, stop } = JSON.parse(line)
    return stop === true ? { stop } : { pid: Math.max(1, pid | 0), fd: Math.max(0, fd | 0) }
  } catch {
    return { pid: 1, fd: 0 }
  }
}

/** The other end. @param {Record<string, string | undefined>} env @returns null: this command was not called by root */
export function lineToRoot (env) {
  if (env[ROOT_LINE] === undefined) return null
  return {
    /** @param {number} pid @param {number} fd @returns {number} below 0: an error number */
    copyOf (pid, fd) {
      const { errno = -EIO, descriptor } = ask({ pid, fd })
      return descriptor ?? errno
    },

    /** @returns {string | null} why it could not be stopped */
    stop: () => oneLine(String(ask({ stop: true }).failed ?? '')) || null
  }

  /** Waits for the answer. @param {Request} request @returns {{ errno?: number, failed?: string | null, descriptor?: number }} */
  function ask (request) {
    writeSync(REQUESTS, `${JSON.stringify(request)}\n`)
    loadPosix()?.lookAtUnix(ANSWERS, -1)
    const { text, descriptor } = loadSystemCalls()?.take(ANSWERS) ?? { text: '{"failed":"root has gone"}', descriptor: null }
    return { ...JSON.parse(text), ...(descriptor !== null && { descriptor }) }
  }
}
