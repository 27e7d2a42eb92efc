import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { rename, symlink } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { tempFolder } from './folder.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const CONTENT = ['build', 'dist', 'server', 'workers', 'db', 'views', 'public']

/**
 * clusterdeck as a machine has it: one folder per version, and a link to the one that is installed.
 * @returns where its command line is, and what installs another version
 */
export function createInstallation () {
  const folder = tempFolder()
  const link = path.join(folder, 'current')
  unpack('1.0.0')
  symlinkSync(path.join(folder, '1.0.0'), link)

  return {
    cli: path.join(link, 'server', 'cli.js'),

    /** `broken`: files with other content than they should have, null: without them */
    async install (version: string, broken: Record<string, string | null> = {}) {
      unpack(version)
      for (const [file, content] of Object.entries(broken)) {
        if (content === null) rmSync(path.join(folder, version, file))
        else writeFileSync(path.join(folder, version, file), content)
      }
      await symlink(path.join(folder, version), `${link}.new`)
      await rename(`${link}.new`, link)
    }
  }

  function unpack (version: string) {
    const target = path.join(folder, version)
    mkdirSync(target)
    for (const name of CONTENT)
      cpSync(path.join(ROOT, name), path.join(target, name), { recursive: true, preserveTimestamps: true,
        filter: (file) => path.basename(file) !== 'node_modules' })
    writeFileSync(path.join(target, 'package.json'),
      JSON.stringify({ ...JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8')), version }))
    symlinkSync(path.join(ROOT, 'node_modules'), path.join(target, 'node_modules'))
  }
}

const PATIENCE_MS = 120_000

/** `shell`: a line that starts an app with one worker. Once that is ready, `stop` stops it, and returns what it says. */
export async function startAndStop (shell: string, options: { cwd: string, env: NodeJS.ProcessEnv },
  stop: () => Promise<{ stdout: string }>)
{
  const master = spawn('sh', ['-c', shell], { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(master, 'exit')
  const timer = setTimeout(() => master.kill('SIGTERM'), PATIENCE_MS)
  for await (const text of master.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false }))
    if (text.includes('1 worker ready')) break
  master.stdout.resume()
  const { stdout } = await stop()
  assert.deepEqual([stdout, await exited], ['stopped\n', [0, null]])
  clearTimeout(timer)
}

/** Gives a package what it needs beside it: all else is in its bundle. */
export function linkPackages (folder: string) {
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'))
  mkdirSync(path.join(folder, 'node_modules'))
  for (const name of Object.keys({ ...dependencies, ...optionalDependencies }))
    symlinkSync(path.join(ROOT, 'node_modules', name), path.join(folder, 'node_modules', name))
}
