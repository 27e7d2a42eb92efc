import { spawnSync } from 'node:child_process'
import { chmodSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { runCliHere } from './cli-here.ts'
import { CLI } from './deck.ts'
import { tempFolder } from './folder.ts'
import type { Report } from '../../server/doctor/api.ts'

/** What `clusterdeck doctor` prints for scripts. Returns `of`: what a check has found. */
export async function doctor (args: string[],
  { cwd, env }: { cwd: string, env?: Record<string, string | undefined> }
): Promise<{ code: number, report: Report, of: (id: string) => Report['items'][number] | undefined }> {
  const { code, stdout, stderr } = await runCliHere(['doctor', '--json', ...args], { cwd, env })
  if (stderr !== '') throw new Error(stderr)
  const report: Report = JSON.parse(stdout)
  return { code, report, of: (id) => report.items.find((item) => item.id === id) }
}

/** As a shell reads what somebody pastes. */
export function wordsOf (text: string): string[] {
  const { status, stdout, stderr } = spawnSync('bash', ['-c', `printf '%s\\0' ${text}`], { encoding: 'utf8' })
  if (status !== 0) throw new Error(stderr)
  return stdout.split('\0').slice(0, -1)
}

/** Types a command into a shell that knows `clusterdeck`. `place`: `before`, `after`: in the same shell. */
export function typeIn (text: string,
  { cwd, before = '', after = '' }: { cwd: string, before?: string, after?: string })
{
  const programs = tempFolder()
  const own = path.join(programs, 'clusterdeck')
  writeFileSync(own, `#!/bin/sh\nexec '${process.execPath}' '${CLI}' "$@"\n`)
  chmodSync(own, 0o755)
  return spawnSync('bash', ['-c', [before, text, after].filter(Boolean).join('\n')], { cwd, encoding: 'utf8',
    env: { ...process.env, PATH: `${programs}:${process.env.PATH}` } })
}
