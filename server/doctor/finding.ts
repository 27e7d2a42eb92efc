import type { Facts } from './facts.ts'

/**
 * What a check has found. `ok`: nothing is wrong; `unknown`: it cannot be known here.
 * A line that mends it. `command`: for a shell; `option`: for the config file; `flags`: for the command that starts the app; `code`: for
 * the app itself, in words.
 */
export type Severity = typeof SEVERITIES[number]
export type Mend = { how: 'command' | 'option' | 'flags' | 'code', text: string, where: string | null }
export type Finding = {
  /** of the check */
  id: string
  severity: Severity
  /** what it is */
  title: string
  /** it matters, in one sentence */
  why: string
  /** the lines to paste, in this order; none where nothing has to be done */
  mend: Mend[]
}
export type Check = (facts: Facts) => Finding[]

/** The worst comes first. */
export const SEVERITIES = Object.freeze(['error', 'warning', 'unknown', 'info', 'ok'] as const)
/** Severities that need somebody. */
export const PROBLEMS: readonly Severity[] = Object.freeze(['error', 'warning'])

export function finding (id: string, severity: Severity, title: string, why: string = '', mend: Mend[] = []): Finding {
  return { id, severity, title, why, mend }
}

/** @param where the folder to be in */
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
