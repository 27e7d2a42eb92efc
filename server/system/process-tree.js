import { namesIn, statOf, textIn } from './proc.js'
import { identifyProcess, isAlive } from './process-identity.js'

/** @typedef {import('./process-identity.js').ProcessIdentity} ProcessIdentity */
/** @typedef {ProcessIdentity & { mark: string }} TreeIdentity  of its first process, which has a session of its own; `mark`: what its TREE_VARIABLE is, and that of no other process */
/** @typedef {{ pid: number, parent: number, session: number, hasEnded: boolean }} Row */

/** All processes of a tree have this variable, also those that have left it by a session of their own. */
export const TREE_VARIABLE = 'CLUSTERDECK_PROCESS_TREE'

/** Fields of proc_pid_stat(5). */
const STATE = 3
const PARENT = 4
const SESSION = 6

/**
 * What a process has started, and they have, as long as it lives: also where those between have ended, and those that
 * have made a session of their own. It may have ended itself.
 * @param {TreeIdentity} root
 * @param {Iterable<ProcessIdentity>} [known]  that have been found before
 * @returns {ProcessIdentity[]} those that live, the root first
 */
export function treeOf (root, known = []) {
  const rows = readProcesses()
  const isThere = isAlive(root)
  // The number of a session stays taken as long as anybody is in it, so nobody else can have it unless all have ended.
  const isItsSession = isThere || rows.get(root.pid)?.hasEnded !== false
  /** @type {Set<number>} */
  const found = new Set(isThere ? [root.pid] : [])
  for (const each of known) if (isAlive(each)) found.add(each.pid)
  const adopters = ancestorsOf(process.pid, rows)
  const mark = `${TREE_VARIABLE}=${root.mark}\0`
  for (const { pid, parent, session } of rows.values()) {
    if (pid !== root.pid && ((isItsSession && session === root.pid) || (adopters.has(parent) && hasMark(pid, mark)))) found.add(pid)
  }
  const all = withDescendants(found, rows)
  return all.filter((pid) => rows.get(pid)?.hasEnded === false).map((pid) => identifyProcess(pid))
}

/** @returns {number[]} of all programs that this process, or any below it, has started as a tree; also those that have left theirs */
export function programProcesses () {
  // It may belong to a tree itself, and so do others that it has started.
  const { [TREE_VARIABLE]: ownMark } = process.env
  const isOfOwnTree = (/** @type {number} */ pid) => ownMark !== undefined && hasMark(pid, `${TREE_VARIABLE}=${ownMark}\0`)
  return withDescendants(new Set([process.pid]), readProcesses()).filter((pid) => hasMark(pid, `${TREE_VARIABLE}=`) && !isOfOwnTree(pid))
}

/** @param {number} pid @returns {number[]} it and all that it has started, those that have ended but were not waited for included */
export function descendantsOf (pid) {
  return withDescendants(new Set([pid]), readProcesses())
}

/** @returns {Map<number, Row>} all that there are; none where the system does not tell */
function readProcesses () {
  /** @type {Map<number, Row>} */
  const rows = new Map()
  for (const name of namesIn('/proc')) {
    const fields = /^\d+$/.test(name) ? statOf(name) : null
    if (fields) rows.set(Number(name), { pid: Number(name), parent: Number(fields[PARENT]), session: Number(fields[SESSION]), hasEnded: 'ZX'.includes(fields[STATE]) })
  }
  return rows
}

/** Who takes in processes whose parent has ended is among these. @param {number} pid @param {Map<number, Row>} rows @returns {Set<number>} with itself */
function ancestorsOf (pid, rows) {
  /** @type {Set<number>} */
  const found = new Set([pid])
  for (let row = rows.get(pid); row && row.parent > 0; row = rows.get(row.parent)) found.add(row.parent)
  return found
}

/** @param {Set<number>} roots @param {Map<number, Row>} rows @returns {number[]} parents before their children */
function withDescendants (roots, rows) {
  /** @type {Map<number, number[]>} */
  const children = new Map()
  for (const { pid, parent } of rows.values()) {
    const siblings = children.get(parent)
    if (siblings) siblings.push(pid)
    else children.set(parent, [pid])
  }
  const all = new Set(roots)
  for (const pid of all) for (const child of children.get(pid) ?? []) all.add(child)
  return [...all]
}

/** @param {number} pid @param {string} mark @returns {boolean} whether it began with a variable that begins so */
function hasMark (pid, mark) {
  return `\0${textIn(`/proc/${pid}/environ`)}`.includes(`\0${mark}`)
}
