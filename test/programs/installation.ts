import { cpSync, statSync } from 'node:fs'
import path from 'node:path'
import { fillOnce } from '../apps/installation.ts'
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
  const { build = [] } = program
  const sources = (program.files ?? []).map((file) => path.join(SOURCES, file))
  await fillOnce(folder, { facts: build, sources }, async () => {
    for (const from of sources)
      cpSync(from, statSync(from).isDirectory() ? folder : path.join(folder, path.basename(from)), { recursive: true })
    for (const command of build) await run(command, folder, env)
  })
  return { folder, env, version: await versionOf(program, folder, env) }
}

async function versionOf ({ needs, version }: Program, folder: string, env: Record<string, string>) {
  const command = version
    ? ['python', '-c', `import importlib.metadata as m; print(m.version(${JSON.stringify(version)}))`]
    : TOOLS[needs].version
  return /\d+(\.\d+)+/.exec(await run(command, folder, env))?.[0] ?? ''
}
