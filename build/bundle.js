// Puts the code of clusterdeck into few files, which start much sooner: `npm run bundle`; `npm ci` and `npm pack` do it by themselves.
// dist/<name>/ has them; dist/bundle.json says which they are, and of which sources, as server/own-code.js reads it.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { optionListText } from './option-list.js'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const DIST = path.join(ROOT, 'dist')
/** Packages that are read before the first worker starts. The others stay as they are installed. */
const INSIDE = ['commander', 'croner', 'zod']
/** A running master may still load parts of the bundle that it was started with. A package has only one. */
const KEPT = ['pack', 'publish'].includes(process.env.npm_command ?? '') ? 1 : 3
const TARGET = 'node20'
const BUILTIN = 'builtin'
const IS_BUNDLE = path.join(ROOT, 'server', 'is-bundle.js')
const WORKER_CODE = path.join(ROOT, 'server', 'cluster', 'worker-code.js')
const WORKER_CODE_TEXT = 'import { fileURLToPath } from \'node:url\'\nexport const WORKER_CODE = fileURLToPath(new URL(\'worker.cjs\', import.meta.url))\n'
const OPTION_LIST = path.join(ROOT, 'server', 'config', 'option-list.js')
const HEAD = 'import { createRequire as requireOf } from \'node:module\'; const require = requireOf(import.meta.url);'

/** @typedef {import('esbuild').BuildResult<{ metafile: true, write: false }>} Built */

const esbuild = await import('esbuild').catch((error) => {
  // An installation without devDependencies runs the sources.
  if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error
  return null
})
if (esbuild) write([await bundleServer(esbuild), await bundleWorker(esbuild)])
else console.error('clusterdeck: esbuild is not installed, so the command runs from its sources, which takes a moment longer')

/** @param {typeof import('esbuild')} esbuild @returns {Promise<Built>} */
async function bundleServer ({ build }) {
  return await build({ ...common('esm'), entryPoints: { 'command-line': path.join(ROOT, 'server', 'command-line.js') }, splitting: true, chunkNames: '[name]-[hash]', banner: { js: HEAD } })
}

/** Node loads it in each worker, before the app. @param {typeof import('esbuild')} esbuild @returns {Promise<Built>} */
async function bundleWorker ({ build }) {
  return await build({ ...common('cjs'), entryPoints: { worker: path.join(ROOT, 'workers', 'boot.js') }, outExtension: { '.js': '.cjs' } })
}

/** @param {'esm' | 'cjs'} format @returns {import('esbuild').BuildOptions & { metafile: true, write: false }} */
function common (format) {
  return {
    bundle: true,
    platform: 'node',
    target: TARGET,
    format,
    outdir: DIST,
    absWorkingDir: ROOT,
    metafile: true,
    write: false,
    logLevel: 'warning',
    plugins: [{
      name: 'own',
      setup ({ onLoad, onResolve }) {
        onResolve({ filter: /^node:/ }, placeOfBuiltin)
        onResolve({ filter: /^[^./]/ }, placeOf)
        onLoad({ filter: /./, namespace: BUILTIN }, ({ path: name }) => ({ contents: `module.exports = require(${JSON.stringify(name)})`, loader: 'js' }))
        onLoad({ filter: /\.js$/ }, ({ path: file }) => readOwn(file, format))
      }
    }]
  }
}

/**
 * As `require` has it: where an ES module imports a part of Node, Node reads all that this exports, and so loads what nobody has asked
 * for. For node:http that is its own HTTP client for fetch and WebSocket, as large as all of ours.
 * @param {import('esbuild').OnResolveArgs} reference @returns {import('esbuild').OnResolveResult}
 */
function placeOfBuiltin ({ path: name, namespace, kind }) {
  return namespace === BUILTIN || kind === 'dynamic-import' ? { path: name, external: true } : { path: name, namespace: BUILTIN }
}

/** @param {import('esbuild').OnResolveArgs} reference to a package @returns {import('esbuild').OnResolveResult | undefined} undefined: it goes into the bundle */
function placeOf ({ path: name, importer, kind }) {
  if (kind === 'entry-point' || INSIDE.includes(name) || isPackage(importer)) return undefined
  return { path: name, external: true }
}

/**
 * A module finds files beside its source, which is at the same place in each installation.
 * @param {string} file @param {'esm' | 'cjs'} format @returns {Promise<import('esbuild').OnLoadResult | undefined>}
 */
async function readOwn (file, format) {
  if (isPackage(file)) return undefined
  if (file === IS_BUNDLE) return { contents: 'export const IS_BUNDLE = true\n', loader: 'js' }
  if (file === WORKER_CODE) return { contents: WORKER_CODE_TEXT, loader: 'js' }
  if (file === OPTION_LIST) return { contents: optionListText(), loader: 'js' }
  const text = await readFile(file, 'utf8')
  if (!/import\.meta\.(url|dirname)/.test(text)) return { contents: text, loader: 'js' }
  const relative = JSON.stringify(`../../${path.relative(ROOT, file)}`)
  const here = format === 'esm' ? `new URL(${relative}, import.meta.url)` : `new URL(${relative}, process.getBuiltinModule('node:url').pathToFileURL(__filename))`
  const own = `const ownUrl = ${here}\n`
  return { contents: own + text.replaceAll('import.meta.url', 'ownUrl.href').replaceAll('import.meta.dirname', 'decodeURIComponent(new URL(\'.\', ownUrl).pathname.slice(0, -1))'), loader: 'js' }
}

/** @param {string} file */
function isPackage (file) {
  return file.includes(`${path.sep}node_modules${path.sep}`)
}

/** @param {Built[]} built */
function write (built) {
  const files = built.flatMap(({ outputFiles }) => outputFiles)
  const sources = [...new Set(built.flatMap(({ metafile }) => Object.keys(metafile.inputs)))].filter((file) => !file.includes('node_modules/') && !file.startsWith(`${BUILTIN}:`)).sort()
  const name = createHash('sha256').update(files.map(({ hash, path }) => `${path} ${hash}`).sort().join('\n')).digest('hex').slice(0, 12)
  const folder = path.join(DIST, name)
  // What is there may be in use.
  if (!existsSync(folder)) writeFolder(folder, files)
  const list = path.join(DIST, 'bundle.json')
  writeFileSync(`${list}.new`, JSON.stringify({ name, sources: Object.fromEntries(sources.map((file) => [file, statSync(path.join(ROOT, file)).size])) }))
  renameSync(`${list}.new`, list)
  const others = readdirSync(DIST, { withFileTypes: true }).filter((entry) => entry.isDirectory() && entry.name !== name).map((entry) => path.join(DIST, entry.name))
  const newestFirst = others.map((each) => ({ each, at: statSync(each).mtimeMs })).sort((one, other) => other.at - one.at)
  for (const { each } of newestFirst.slice(KEPT - 1)) rmSync(each, { recursive: true })
}

/** @param {string} folder @param {import('esbuild').OutputFile[]} files */
function writeFolder (folder, files) {
  const unfinished = `${folder}-${process.pid}`
  mkdirSync(unfinished, { recursive: true })
  for (const { path: file, contents } of files) writeFileSync(path.join(unfinished, path.basename(file)), contents)
  renameSync(unfinished, folder)
}
