import { namesIn, statOf, textIn } from './proc.ts'
import { identifyProcess, isAlive, type ProcessIdentity } from './process-identity.ts'

/**
 * of its first process, which has a session of its own; `mark`: what its TREE_VARIABLE is, and that of no other process
 */
export type TreeIdentity = ProcessIdentity & { mark: string }
type Row = { pid: number, parent: number, session: number, hasEnded: boolean }

/** All processes of a tree have this variable, also those that have left it by a session of their own. */
export const TREE_VARIABLE = 'CLUSTERDECK_PROCESS_TREE'

/** Fields of proc_pid_stat(5). */
const STATE = 3
const PARENT = 4
const SESSION = 6

/**
 * What a process has started, and they have, as long as it lives: also where those between have ended, and those that
 * have made a session of their own. It may have ended itself. `known`: that have been found before. Returns those that
 * live, the root first.
 */
export function treeOf (root: TreeIdentity, known: Iterable<ProcessIdentity> = []): ProcessIdentity[] {
  const rows = readProcesses()
  const isThere = isAlive(root)
  // The number of a session stays taken as long as anybody is in it, so nobody else can have it unless all have ended.
  const isItsSession = isThere || rows.get(root.pid)?.hasEnded !== false
  const found: Set<number> = new Set(isThere ? [root.pid] : [])
  for (const each of known) if (isAlive(each)) found.add(each.pid)
  const adopters = ancestorsOf(process.pid, rows)
  const mark = `${TREE_VARIABLE}=${root.mark}\0`
  for (const { pid, parent, session } of rows.values()) {
    if (pid !== root.pid && ((isItsSession && session === root.pid) || (adopters.has(parent) && hasMark(pid, mark))))
      found.add(pid)
  }
  const all = withDescendants(found, rows)
  return all.filter((pid) => rows.get(pid)?.hasEnded === false).map((pid) => identifyProcess(pid))
}

/**
 * @returns of all programs that this process, or any below it, has started as a tree; also those that have left theirs
 */
export function programProcesses (): number[] {
  // It may belong to a tree itself, and so do others that it has started.
  const { [TREE_VARIABLE]: ownMark } = process.env
  const isOfOwnTree = (pid: number) => ownMark !== undefined && hasMark(pid, `${TREE_VARIABLE}=${ownMark}\0`)
  return withDescendants(new Set([process.pid]), readProcesses()).filter((pid) =>
    hasMark(pid, `${TREE_VARIABLE}=`) && !isOfOwnTree(pid)
  )
}

/** @returns it and all that it has started, those that have ended but were not waited for included */
export function descendantsOf (pid: number): number[] {
  return withDescendants(new Set([pid]), readProcesses())
}

/** @returns all that there are; none where the system does not tell */
function readProcesses (): Map<number, Row> {
  const rows: Map<number, Row> = new Map()
  for (const name of namesIn('/proc')) {
    const fields = /^\d+$/.test(name) ? statOf(name) : null
    if (fields)
      rows.set(Number(name), { pid: Number(name), parent: Number(fields[PARENT]), session: Number(fields[SESSION]),
        hasEnded: 'ZX'.includes(fields[STATE]) })
  }
  return rows
}

/** Who takes in processes whose parent has ended is among these. @returns with itself */
function ancestorsOf (pid: number, rows: Map<number, Row>): Set<number> {
  const found: Set<number> = new Set([pid])
  for (let row = rows.get(pid); row && row.parent > 0; row = rows.get(row.parent)) found.add(row.parent)
  return found
}

/** @returns parents before their children */
function withDescendants (roots: Set<number>, rows: Map<number, Row>): number[] {
  const children: Map<number, number[]> = new Map()
  for (const { pid, parent } of rows.values()) {
    const siblings = children.get(parent)
    if (siblings) siblings.push(pid)
    else children.set(parent, [pid])
  }
  const all = new Set(roots)
  for (const pid of all) for (const child of children.get(pid) ?? []) all.add(child)
  return [...all]
}

/** Tells whether it began with a variable that begins so */
function hasMark (pid: number, mark: string): boolean {
  return `\0${textIn(`/proc/${pid}/environ`)}`.includes(`\0${mark}`)
}
