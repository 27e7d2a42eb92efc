import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { INSTALLED, run, TOOLS } from './tools.ts'
import type { Program } from './programs.ts'

const SOURCES = path.join(import.meta.dirname, 'sources')

/**
 * A folder with the program as its author has it. What has not changed since is left as it is.
 * @returns `env`: with which its commands are found
 * @throws {Error} what an installer or a compiler said
 */
export async function install (
  program: Program
): Promise<{ folder: string, env: Record<string, string>, version: string }> {
  const env = await TOOLS[program.needs].install()
  const folder = path.join(INSTALLED, program.name)
  const stamp = path.join(folder, '.stamp')
  const wanted = digest(program)
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
    rmSync(stamp, { force: true })
    mkdirSync(folder, { recursive: true })
    for (const from of sourcesOf(program))
      cpSync(from, statSync(from).isDirectory() ? folder : path.join(folder, path.basename(from)), { recursive: true })
    for (const command of program.build ?? []) await run(command, folder, env)
    writeFileSync(stamp, wanted)
  }
  return { folder, env, version: await versionOf(program, folder, env) }
}

function digest (program: Program) {
  const hash = createHash('sha256').update(JSON.stringify(program.build ?? []))
  for (const source of sourcesOf(program)) {
    for (const file of listFiles(source)) hash.update(file).update(readFileSync(file))
  }
  return hash.digest('hex')
}

function sourcesOf ({ files = [] }: Program) {
  return files.map((file) => path.join(SOURCES, file))
}

/** `where`: a file or a folder */
function listFiles (where: string): string[] {
  return statSync(where).isDirectory()
    ? readdirSync(where).sort().flatMap((name) => listFiles(path.join(where, name)))
    : [where]
}

async function versionOf ({ needs, version }: Program, folder: string, env: Record<string, string>) {
  const command = version
    ? ['python', '-c', `import importlib.metadata as m; print(m.version(${JSON.stringify(version)}))`]
    : TOOLS[needs].version
  return /\d+(\.\d+)+/.exec(await run(command, folder, env))?.[0] ?? ''
}
