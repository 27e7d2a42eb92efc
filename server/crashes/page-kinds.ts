import { capitalised, withoutOptions } from '../../public/format.ts'
import { firstLine } from '../dashboard/readable-text.ts'
import type { CrashRecord } from '../../db/crashes.ts'

/** Names of crashes, for people. */
type Kind = CrashRecord['kind']

/** `noStack`: why there is no stack */
const VIEWS: Readonly<Record<Kind, { label: string, noStack: string }>> = Object.freeze({
  exception: { label: 'Exception', noStack: 'The thrown value is not an Error, so it has no stack.' },
  'unhandled-rejection': { label: 'Unhandled rejection',
    noStack: 'The rejection value is not an Error, so it has no stack.' },
  panic: { label: 'Panic', noStack: 'The program wrote no stack. A Rust program writes one with RUST_BACKTRACE=1.' },
  'exit-code': { label: 'Exit', noStack: 'The app called exit, which leaves no stack. See its last lines on stderr.' },
  signal: { label: 'Signal', noStack: 'A signal ended the process, which leaves no stack.' },
  'heap-out-of-memory': { label: 'Heap out of memory',
    noStack:
      'The process ended without a stack. Of a Node.js app, a heap snapshot of a live worker shows what fills its heap.' },
  'kernel-out-of-memory': { label: 'Killed: out of memory',
    noStack: 'The kernel killed the process to free memory, which leaves no stack.' },
  hung: { label: 'Hung', noStack: 'The stack of the blocked event loop could not be read.' },
  'boot-failure': { label: 'Not ready in time', noStack: 'The worker was not ready in time; it threw no error.' },
  'not-started': { label: 'Not started', noStack: 'The program could not be executed.' }
})
const KINDS = new Map(Object.entries(VIEWS))

/** Node's type names of thrown values that are no errors. */
const PRIMITIVES = Object.freeze(['string', 'number', 'boolean', 'undefined', 'null', 'object', 'symbol', 'bigint',
  'function'])

export const GROUP_STATES: Readonly<Record<string, { label: string, tone: string, icon: string }>> = Object.freeze({
  open: { label: 'Open', tone: 'bad', icon: 'circle-alert' },
  resolved: { label: 'Resolved', tone: 'idle', icon: 'circle-check' },
  muted: { label: 'Muted', tone: 'idle', icon: 'bell-off' }
})

export function crashKindOf (kind: string) {
  return KINDS.get(kind) ?? { label: kind, noStack: 'There is no stack.' }
}

/** @returns what the headline does not say */
export function crashLabels (group: Parameters<typeof headlineOf>[0] & { cause: string }): string[] {
  const { kind, cause } = group
  const { label } = crashKindOf(kind)
  const isBootOfAnotherKind = cause === 'boot-failure' && kind !== 'boot-failure'
  return [...(headlineOf(group).message === label ? [] : [label]), ...(isBootOfAnotherKind ? ['While starting'] : [])]
}

/**
 * Returns text of the app, not cut. `thrown string` names a thrown value that is no error; a crash without an error is
 * described by how it ended, without the worker that it happened to last.
 */
export function headlineOf (
  { kind, errorName, message }: { kind: string, errorName: string | null, message: string | null }
): { name: string | null, message: string } {
  if (kind === 'hung') {
    const request = / in "((?:[^"\\]|\\.)*)"/
    return { name: null, message: capitalised(withoutOptions(message ?? '').replace(request, ' in $1')) }
  }
  if (errorName !== null) return { name: nameOf(errorName), message: message ?? '' }
  const manner = withoutWorker(withoutOptions(message ?? ''))
  // A signal ends a process that lacks memory, which its kind says already.
  const isInKind = manner === '' || kind.endsWith('out-of-memory')
  return { name: null, message: isInKind ? crashKindOf(kind).label : capitalised(manner) }
}

/** What `headlineOf` says, on one line. */
export function titleOf (group: Parameters<typeof headlineOf>[0], maxChars: number): string {
  const { name, message } = headlineOf(group)
  return firstLine(name === null ? message : `${name}: ${message}`, maxChars)
}

/** @returns what happened to a worker, where somebody knows already to which: `exited with code 1` */
export function withoutWorker (text: string): string {
  return text.replace(/^worker \d+ \(slot \d+\) (?:(?:was|is) )?/i, '')
}

export function nameOf (errorName: string) {
  return PRIMITIVES.includes(errorName) ? `thrown ${errorName}` : errorName
}

export function crashUrlOf ({ detail }: { detail?: Record<string, unknown> | null }): string | null {
  const { crash, crashGroup } = detail ?? {}
  if (!Number.isSafeInteger(crashGroup)) return null
  return `/crashes/${crashGroup}${Number.isSafeInteger(crash) ? `?crash=${crash}` : ''}`
}
