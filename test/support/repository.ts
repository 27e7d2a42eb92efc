import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { tempFolder, writeFiles } from './folder.ts'

export type Repository = ReturnType<typeof createRepository>

/** Makes a real git repository. `prefix`: the folder of the app in it, such as `apps/web`. */
export function createRepository (folder: string = tempFolder(), prefix: string = '') {
  git(folder, 'init', '--quiet')
  const app = path.join(folder, prefix)
  mkdirSync(app, { recursive: true })

  return {
    folder,
    app,
    git: (...words: string[]) => git(folder, ...words),

    /** Commits these files of the app, and all that has changed. Returns the commit. */
    commit (files: Record<string, string>, subject: string = 'a change'): string {
      writeFiles(app, files)
      git(folder, 'add', '--all')
      git(folder, 'commit', '--quiet', '--allow-empty', '--message', subject)
      return git(folder, 'rev-parse', 'HEAD')
    }
  }
}

export function git (folder: string, ...words: string[]): string {
  const settings = ['user.name=Ada', 'user.email=ada@example.com', 'init.defaultBranch=main', 'commit.gpgsign=false']
    .flatMap((setting) => ['-c', setting])
  return execFileSync('git', ['-C', folder, ...settings, ...words], { encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'] }).trim()
}

/** The files of an app that answers with the version that was built, and whose code or build can be broken. */
export function versionOf (version: string,
  { atLoad = '', atRequest = '', build = '' }: { atLoad?: string, atRequest?: string, build?: string } = {})
{
  return {
    'package.json': JSON.stringify({ name: 'shop', version: '1.0.0', type: 'module',
      scripts: { build: 'node build.js' } }),
    'package-lock.json': JSON.stringify({ name: 'shop', version: '1.0.0', lockfileVersion: 3, requires: true,
      packages: { '': { name: 'shop', version: '1.0.0' } } }),
    '.gitignore': 'dist\nnode_modules\n.clusterdeck\n',
    'build.js':
      `import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'\n${build}\nmkdirSync('dist', { recursive: true })\nwriteFileSync('dist/built.txt', '${version}')\nconsole.log('built ${version}')\n`,
    'app.js': `import http from 'node:http'
import { readFileSync } from 'node:fs'
${atLoad}
http.createServer((request, response) => {
  ${atRequest}
  response.end(readFileSync('dist/built.txt', 'utf8'))
}).listen(Number(process.env.PORT ?? 0))
`
  }
}

/**
 * Writes a package that npm installs without a registry, a tarball, into the folder of the app.
 * @returns package.json and lock file with that package, to be committed over those of versionOf()
 */
export function withPackage (app: string): Record<string, string> {
  const [lib, place] = [tempFolder(), tempFolder()]
  writeFiles(lib, { 'package.json': JSON.stringify({ name: 'answer', version: '1.0.0', main: 'index.js' }),
    'index.js': 'module.exports = 42\n' })
  mkdirSync(path.join(app, 'vendor'), { recursive: true })
  execFileSync('npm', ['pack', '--silent', '--pack-destination', path.join(app, 'vendor')], { cwd: lib,
    stdio: 'ignore' })
  const manifest = { ...JSON.parse(versionOf('')['package.json']),
    dependencies: { answer: 'file:vendor/answer-1.0.0.tgz' } }
  writeFiles(place, { 'package.json': JSON.stringify(manifest) })
  cpSync(path.join(app, 'vendor'), path.join(place, 'vendor'), { recursive: true })
  execFileSync('npm', ['install', '--silent', '--offline', '--package-lock-only', '--no-audit'], { cwd: place,
    stdio: 'ignore' })
  return { 'package.json': JSON.stringify(manifest),
    'package-lock.json': readFileSync(path.join(place, 'package-lock.json'), 'utf8') }
}
