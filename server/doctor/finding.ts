import type { Facts } from './facts.ts'
import type { Finding, Mend } from '../api/shapes.ts'

export type Severity = typeof SEVERITIES[number]
export type { Finding, Mend }
export type Check = (facts: Facts) => Finding[]

/** The worst comes first. */
export const SEVERITIES = Object.freeze(['error', 'warning', 'unknown', 'info', 'ok'] as const)
/** Severities that need somebody. */
export const PROBLEMS: readonly Severity[] = Object.freeze(['error', 'warning'])

export function finding (id: string, severity: Severity, title: string, why: string = '', mend: Mend[] = []): Finding {
  return { id, severity, title, why, mend }
}

/** `where`: the folder to be in */
export function command (text: string, where: string | null = null): Mend {
  return { how: 'command', text, where }
}

/** @returns the line by which this user runs it as root */
export function asRoot ({ isRoot }: { isRoot: boolean }, text: string): string {
  return isRoot ? text : `sudo ${text}`
}

export function inCode (text: string): Mend {
  return { how: 'code', text, where: null }
}
