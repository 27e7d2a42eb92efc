import { spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { runCliHere } from './cli-here.js'
import { CLI } from './deck.js'
import { tempFolder } from './folder.js'

/** @typedef {import('../../server/api/checks.js').Report} Report */

/**
 * What `clusterdeck doctor` prints for scripts.
 * @param {string[]} args @param {{ cwd: string, env?: Record<string, string | undefined> }} place
 * @returns {Promise<{ code: number, report: Report, of: (id: string) => Report['items'][number] | undefined }>} `of`: what a check has found
 */
export async function doctor (args, { cwd, env }) {
  const { code, stdout, stderr } = await runCliHere(['doctor', '--json', ...args], { cwd, env })
  if (stderr !== '') throw new Error(stderr)
  /** @type {Report} */
  const report = JSON.parse(stdout)
  return { code, report, of: (id) => report.items.find((item) => item.id === id) }
}

/** As a shell reads what somebody pastes. @param {string} text @returns {string[]} */
export function wordsOf (text) {
  const { status, stdout, stderr } = spawnSync('bash', ['-c', `printf '%s\\0' ${text}`], { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return stdout.split('\0').slice(0, -1)
}

/** Types a command into a shell that knows `clusterdeck`. @param {string} text @param {{ cwd: string, before?: string, after?: string }} place `before`, `after`: in the same shell */
export function typeIn (text, { cwd, before = '', after = '' }) {
  const programs = tempFolder()
  const own = path.join(programs, 'clusterdeck')
  writeFileSync(own, `#!/bin/sh\nexec '${process.execPath}' '${CLI}' "$@"\n`)
  chmodSync(own, 0o755)
  return spawnSync('bash', ['-c', [before, text, after].filter(Boolean).join('\n')], { cwd, encoding: 'utf8', env: { ...process.env, PATH: `${programs}:${process.env.PATH}` } })
}
