import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { errorText } from '../../server/errors.ts'

const REDOCLY = '@redocly/cli@2'
const SCHEMATHESIS_VERSION = '4.32.5'
const FOLDER = import.meta.dirname
const PATIENCE_MS = 10 * 60_000
/** Neither of them is to look for anything else than what it is there for. */
const QUIET = Object.freeze({ REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' })

/** `code`: null where there is no such program */
type Result = { code: number | null, output: string }

/** `document`: a file */
export function lint (document: string, place: { cwd: string }) {
  return run('npx', ['--yes', REDOCLY, 'lint', document], place)
}

/** `report`: a file to be written */
export function fuzz (program: string,
  { url, token, report, maxExamples, cwd }: { url: string, token: string, report: string, maxExamples: number,
    cwd: string })
{
  return run(program, ['--config-file', path.join(FOLDER, 'schemathesis.toml'), 'run', `${url}/api/v1/openapi.json`,
    '--header', `Authorization: Bearer ${token}`, '--checks', 'all', '--continue-on-failure', '--max-examples',
    String(maxExamples), '--seed', '1', '--generation-database', 'none', '--report', 'json', '--report-json-path',
    report, '--no-color'], { cwd })
}

/** The one that is named, else the one that is installed, else one in a virtual environment that outlives this run. */
export async function findSchemathesis (named: string | undefined): Promise<string> {
  const program = named ?? 'schemathesis'
  const { code, output } = await run(program, ['--version'])
  if (code === 0) return program
  if (named !== undefined)
    throw new Error(
      `--schemathesis: expected a program that tells its version, received ${JSON.stringify(named)}: ${
        output.trim() || `exit code ${code}`
      }`
    )
  const environment = path.join(tmpdir(), `clusterdeck-schemathesis-${SCHEMATHESIS_VERSION}`)
  const installed = path.join(environment, 'bin', 'schemathesis')
  if (!existsSync(installed)) {
    await mustRun('python3', ['-m', 'venv', environment])
    await mustRun(path.join(environment, 'bin', 'pip'), ['install', '--quiet', `schemathesis==${SCHEMATHESIS_VERSION}`])
  }
  return installed
}

async function mustRun (program: string, words: string[]) {
  const { code, output } = await run(program, words)
  if (code !== 0) throw new Error(`${program} ${words.join(' ')}: expected exit code 0, received ${code}\n${output}`)
}

async function run (program: string, words: string[], { cwd }: { cwd?: string } = {}): Promise<Result> {
  const child = spawn(program, words, { cwd, stdio: ['ignore', 'pipe', 'pipe'], timeout: PATIENCE_MS,
    env: { ...process.env, ...QUIET } })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => {
      output += text
    })
  try {
    const [code] = await once(child, 'close')
    return { code, output }
  } catch (error) {
    return { code: null, output: errorText(error) }
  }
}
