import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { tempFolder, writeFiles } from './folder.js'

/** @typedef {ReturnType<typeof createRepository>} Repository */

/**
 * What somebody has a git repository of: a real one.
 * @param {string} [folder] @param {string} [prefix]  where the app is in it, `apps/web`
 */
export function createRepository (folder = tempFolder(), prefix = '') {
  git(folder, 'init', '--quiet')
  const app = path.join(folder, prefix)
  mkdirSync(app, { recursive: true })

  return {
    folder,
    app,
    git: (/** @type {string[]} */ ...words) => git(folder, ...words),

    /** @param {Record<string, string>} files  of the app; @param {string} [subject] @returns {string} the commit */
    commit (files, subject = 'a change') {
      writeFiles(app, files)
      git(folder, 'add', '--all')
      git(folder, 'commit', '--quiet', '--allow-empty', '--message', subject)
      return git(folder, 'rev-parse', 'HEAD')
    }
  }
}

/** @param {string} folder @param {string[]} words @returns {string} */
export function git (folder, ...words) {
  const settings = ['user.name=Ada', 'user.email=ada@example.com', 'init.defaultBranch=main', 'commit.gpgsign=false'].flatMap((setting) => ['-c', setting])
  return execFileSync('git', ['-C', folder, ...settings, ...words], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
}

/**
 * An app that answers with what was built of it, and a build that its commit can break.
 * @param {string} version @param {{ atLoad?: string, atRequest?: string, build?: string }} [what]
 */
export function versionOf (version, { atLoad = '', atRequest = '', build = '' } = {}) {
  return {
    'package.json': JSON.stringify({ name: 'shop', version: '1.0.0', type: 'module', scripts: { build: 'node build.js' } }),
    'package-lock.json': JSON.stringify({ name: 'shop', version: '1.0.0', lockfileVersion: 3, requires: true, packages: { '': { name: 'shop', version: '1.0.0' } } }),
    '.gitignore': 'dist\nnode_modules\n.clusterdeck\n',
    'build.js': `import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'\n${build}\nmkdirSync('dist', { recursive: true })\nwriteFileSync('dist/built.txt', '${version}')\nconsole.log('built ${version}')\n`,
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
 * Gives the app of versionOf() a package that npm installs without a registry: a tarball in its repository.
 * @param {string} app @param {number} [files]  how many the package has
 * @returns {Record<string, string>} what else the app has then
 */
export function withPackage (app, files = 1) {
  const [lib, place] = [tempFolder(), tempFolder()]
  writeFiles(lib, { 'package.json': JSON.stringify({ name: 'answer', version: '1.0.0', main: 'index.js' }), 'index.js': 'module.exports = 42\n' })
  for (let n = 1; n < files; n++) writeFiles(lib, { [`lib/${n % 100}/${n}.js`]: `exports.n = ${n} // ${'x'.repeat(4000)}\n` })
  mkdirSync(path.join(app, 'vendor'), { recursive: true })
  execFileSync('npm', ['pack', '--silent', '--pack-destination', path.join(app, 'vendor')], { cwd: lib, stdio: 'ignore' })
  const manifest = { name: 'shop', version: '1.0.0', type: 'module', scripts: { build: 'node build.js' }, dependencies: { answer: 'file:vendor/answer-1.0.0.tgz' } }
  writeFiles(place, { 'package.json': JSON.stringify(manifest) })
  cpSync(path.join(app, 'vendor'), path.join(place, 'vendor'), { recursive: true })
  execFileSync('npm', ['install', '--silent', '--offline', '--package-lock-only', '--no-audit'], { cwd: place, stdio: 'ignore' })
  return { 'package.json': JSON.stringify(manifest), 'package-lock.json': readFileSync(path.join(place, 'package-lock.json'), 'utf8') }
}
