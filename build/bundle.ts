// Builds what runs: few files, which start much sooner than the sources: `npm run bundle`; `npm ci`, `npm pack` and a
// start from changed sources do it by themselves. dist/<name>/ has the code of the command, of masters and of workers;
// dist/bundle.json says its name, and of which sources it is, as server/own-code.js reads it. Beside them is what
// processes and threads of their own run, at the same place in each version, as a master that has run for long may
// start them. All packages are inside, but for those with native code; dist/licences.txt says which.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { minifySync, transform } from 'rolldown/utils'
import { FIRST_SCRIPT, PAGE_SCRIPTS, THREAD } from '../server/dashboard/scripts.ts'
import { LENGTH_BYTES, LOADER } from '../server/system/built-in-bundle.ts'
import { optionListText } from './option-list.ts'
import { joinModules, toClassicScript } from './page-scripts.ts'
import type { LoadResult, OutputChunk, OutputOptions, Plugin, PluginContext } from 'rolldown'

type Chunk = Pick<OutputChunk, 'fileName' | 'code'> & Partial<Pick<OutputChunk, 'name' | 'imports'>>
/** what is known of each, by its id */
type Modules = Pick<PluginContext, 'getModuleInfo'>

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const DIST = path.join(ROOT, 'dist')
/** Packages that stay as they are installed: they have code for each kind of machine. */
const NATIVE = ['better-sqlite3', 'koffi']
/** Files of packages that pages load. */
const OF_PAGES = Object.freeze({ 'htmx.js': 'htmx.org/dist/htmx.min.js',
  'socket.io.js': 'socket.io/client-dist/socket.io.esm.min.js', 'uplot.css': 'uplot/dist/uPlot.min.css',
  'uplot.js': 'uplot/dist/uPlot.iife.min.js' })
/** Imports that are not ours: their packages offer a minified file as a classic script alone. */
const LIBRARIES = Object.freeze({ 'uplot.js': 'uPlot' })
/** A running master may still load parts of the bundle that it was started with. A package has only one. */
const KEPT = ['pack', 'publish'].includes(process.env.npm_command ?? '') ? 1 : 3
/** What is behind the admin port. */
const SITE = 'sites'
/** Chunks that a master has read before it holds that file, or never reads. */
const NOT_HELD = [LOADER, 'command-line', 'index', 'not-loaded', 'keeper', 'both', 'start', 'client',
  'rolldown-runtime']
/** Folders whose texts a master shows. */
const SHOWN = ['public', 'views', 'views/docs', 'views/pages', 'views/partials']
/** Half a megabyte of characters in encodings that no request to the admin port may have. */
const NEVER_READ = /[\\/]iconv-lite[\\/]encodings[\\/]tables[\\/]/
const BUILTIN = '\0builtin:'
/** Parts of Node that keepers and masters read when they use them: together they take 5 MB. */
const LATER = ['node:https', 'node:tls', 'node:zlib', 'node:inspector', 'node:readline', 'node:dgram',
  'node:worker_threads', 'node:crypto']
/** Workers run in the Node of their app, from this one on. */
const OF_APPS = 'node20'
const OF_OURS = 'node22.19'
/** How a source names a file at its side, or elsewhere in the installation. */
const FILE_BESIDE = /new URL\('([^']+)', import\.meta\.url\)/g
/** What processes and threads of their own run. */
const SCRIPTS = ['workers/old-node.cjs', 'workers/preload.cjs', 'workers/preload.ts',
  'server/cluster/name-keeping-thread.ts', 'server/cluster/unix-binder.ts', 'server/config/file-loader.ts',
  'server/config/loading-guard.ts', 'server/diagnostics/heap-look.ts', 'server/fleet/unpack-thread.ts',
  'server/handover/hand-on-sockets.ts', 'server/handover/take-sockets.ts', 'server/import/ecosystem-process.ts',
  'server/logs/archiver.ts', 'server/logs/search-thread.ts', 'server/programs/as-user.ts',
  'server/programs/call-helper.ts', 'server/programs/launcher.ts']
/** What the keeper loads, what a master loads until its first worker starts, and what commands do. */
const PARTS = Object.freeze({ keeper: ['command-line.ts', 'keeper/keeper.ts'],
  start: ['cli/program.ts', 'config/config.ts', 'host/foreground.ts', 'host/master.ts'],
  client: ['cli/program.ts', 'cli/client-commands.ts'] })
const BUILT = 'server/system/built.ts'
/** It takes the place of built.ts. */
const BUILT_IN_BUNDLE = 'server/system/built-in-bundle.ts'
/** Modules that say something else in a bundle. */
const OTHERWISE: Readonly<Record<string, (place: Place) => string>> = Object.freeze({
  'server/config/option-list.ts': optionListText,
  [BUILT]: (place) => withPlaces(readFileSync(fromTop(BUILT_IN_BUNDLE), 'utf8'), BUILT_IN_BUNDLE, place),
  'server/admin/site-code.ts': () => 'export { dropSite, loadSite } from \'../system/built.ts\''
})

await makeBundle()

async function makeBundle () {
  const modules = new Set(['build/bundle.ts', 'build/option-list.ts', 'build/page-scripts.ts'].map(fromTop))
  let partOf: ReturnType<typeof partsOf> | undefined
  // What a module of the first ones imports goes with it.
  const groups = ['keeper', 'both', 'start', 'shared', 'client'].map((part, index, { length }) => ({ debugName: part,
    priority: length - index,
    name: (module: string, known: Modules) => (partOf ??= partsOf(known))(module) === part ? part : null })
  )
  const server = await generate({ 'command-line': 'server/command-line.ts', index: 'server/index.ts',
    'not-loaded': 'server/not-loaded.ts', [LOADER]: BUILT, [SITE]: 'server/admin/sites.ts' }, { format: 'cjs',
    entryFileNames: '[name].cjs', chunkFileNames: '[name]-[hash].cjs', codeSplitting: { groups } }, '../')
  const worker = await generate({ worker: 'workers/boot.ts' }, { format: 'cjs', entryFileNames: '[name].cjs',
    codeSplitting: false }, '../')
  const scripts: Chunk[] = [...worker]
  for (const file of SCRIPTS) {
    const { name, ext } = path.parse(file)
    scripts.push(
      ...await generate({ [name]: file }, { format: ext === '.cjs' ? 'cjs' : 'esm',
        entryFileNames: ext === '.cjs' ? '[name].cjs' : '[name].js', codeSplitting: false }, './')
    )
  }
  const pages = await pageFiles(modules)
  const shown = SHOWN.flatMap((folder) =>
    readdirSync(fromTop(folder)).filter((name) => /\.(?:css|eta|md|svg)$/.test(name)).map((name) => `${folder}/${name}`)
  )
  for (const file of [BUILT_IN_BUNDLE, ...shown]) modules.add(fromTop(file))
  const files = [...modules].filter((module) => path.isAbsolute(module))
  write({ chunks: [...onDisk(server), ...worker, ...pages, packOf([...server, ...pages], shown)], scripts,
    licences: licencesOf(files.filter(isPackage)) }, files.filter((file) => !isPackage(file)))

  /** `toScripts`: from the files that are made */
  async function generate (input: Record<string, string>, output: OutputOptions & { format: 'esm' | 'cjs' },
    toScripts: string): Promise<Chunk[]>
  {
    const isOfApps = Object.values(input).every((file) => file.startsWith('workers/'))
    const build = await rolldown({
      input: Object.fromEntries(Object.entries(input).map(([name, file]) => [name, fromTop(file)])),
      platform: 'node',
      cwd: ROOT,
      transform: { target: isOfApps ? OF_APPS : OF_OURS },
      plugins: [ownPlugin({ format: output.format, toScripts, modules, isOfApps })]
    })
    const { output: made } = await build.generate({ ...output, comments: false })
    await build.close()
    return made as Chunk[]
  }
}

/** What pages load beside what public/ has for them: scripts, each with all that it imports, and files of packages. */
async function pageFiles (modules: Set<string>): Promise<Chunk[]> {
  const names = readdirSync(fromTop('public')).filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))
  const sources = new Map(
    await Promise.all([...names.map(moduleOfPage), ...Object.entries(OF_PAGES).map(async ([name, file]) =>
      [name, await readSource(`node_modules/${file}`)] as const
    )])
  )
  const first = joinModules(FIRST_SCRIPT, read)
  const scripts = [['early.js', `${read('theme.js')}\n${read('waiting.js')}`], [FIRST_SCRIPT, first.source], [THREAD,
    joinModules(THREAD, read).source],
    ...PAGE_SCRIPTS.map((
      name
    ) => [name, joinModules(name, read, { libraries: LIBRARIES, held: first.modules }).source])]
  return [['uplot.css', read('uplot.css')], ['libraries.js',
    `${read('htmx.js')}\n${toClassicScript(read('socket.io.js'), 'io')}`],
    ...scripts.map(([name, source]) => [name, minified(name, source)])].map(([name, code]) => ({
      fileName: `pages/${name}`,
      code
    }))

  async function moduleOfPage (name: string): Promise<readonly [name: string, source: string]> {
    const { code, errors } = await transform(name, await readSource(`public/${name}`))
    if (errors.length > 0) throw errors[0]
    return [name.replace(/\.ts$/, '.js'), code.replace(/((?:from |import[ (])"\.\/[\w-]+)\.ts"/g, '$1.js"')]
  }

  async function readSource (file: string) {
    modules.add(fromTop(file))
    return await readFile(fromTop(file), 'utf8')
  }

  function read (name: string) {
    const source = sources.get(name)
    if (source === undefined) throw new Error(`no file of a page is called ${name}`)
    return source
  }
}

function minified (name: string, source: string) {
  const { code, errors } = minifySync(name, source, { module: true, mangle: { toplevel: false } })
  if (errors.length > 0) throw errors[0]
  return code
}

/**
 * The chunks with which commands and masters begin, as files of their own. Whatever else these chunks require comes from
 * the file that is held open.
 */
function onDisk (chunks: Chunk[]): Chunk[] {
  const begins = chunks.filter(({ name = '' }) => NOT_HELD.includes(name)).map(({ fileName }) => fileName)
  const names = new Set(begins.flatMap((file) => [...importedBy(file, chunks)]))
  return chunks.filter(({ fileName }) => names.has(fileName)).map((chunk) => ({ ...chunk,
    code: chunk.code.replaceAll(/\brequire\("\.\/([\w.-]+\.cjs)"\)/g,
      (text, file) => names.has(file) ? text : `require("./${LOADER}.cjs").load("${file}")`) })
  )
}

/**
 * All that a master may read after its start, in one file that it holds open, as server/system/built-in-bundle.ts reads
 * it. `shown`: texts, from the top
 */
function packOf (chunks: Chunk[], shown: string[]): Chunk {
  const held = chunks.filter(({ name = '' }) => !NOT_HELD.includes(name))
  const texts = [...held.map((chunk) => [chunk.fileName, textOfChunk(chunk)]),
    ...shown.map((file) => [file, readFileSync(fromTop(file), 'utf8')])]
  let from = 0
  const places = texts.map(([file, text]) => {
    const bytes = Buffer.byteLength(text)
    from += bytes
    return [file, [from - bytes, bytes]]
  })
  const list = JSON.stringify({ places: Object.fromEntries(places), site: [...importedBy(`${SITE}.cjs`, held)] })
  return { fileName: 'pack',
    code: String(Buffer.byteLength(list)).padEnd(LENGTH_BYTES) + list + texts.map(([, text]) => text).join('') }
}

/** @returns the name of a file, after the names of all files among `chunks` that it imports */
function importedBy (file: string, chunks: Chunk[], found: Set<string> = new Set()): Set<string> {
  const chunk = chunks.find(({ fileName }) => fileName === file)
  if (!chunk || found.has(file)) return found
  for (const each of chunk.imports ?? []) importedBy(each, chunks, found)
  return found.add(file)
}

/** @returns name, version and licence of each package, which its author asks to be given with it. `files`: of packages */
function licencesOf (files: string[]): string {
  const manifests = new Set(files.map((file) => ownManifest(file)))
  return [...manifests].sort().map((manifest) => {
    const { name, version, license } = JSON.parse(readFileSync(manifest, 'utf8'))
    const folder = path.dirname(manifest)
    const texts = readdirSync(folder).filter((file) => /^licen[cs]e/i.test(file)).map((file) =>
      readFileSync(path.join(folder, file), 'utf8').trim()
    )
    return [`${name} ${version}: ${license}`, ...texts].join('\n\n')
  }).join(`\n\n${'-'.repeat(80)}\n\n`)
}

/** Some folders of packages have a package.json that says nothing but the kind of their modules. */
function ownManifest (file: string): string {
  const [, folder] = /^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)/.exec(file) ?? []
  return path.join(folder, 'package.json')
}

/** @returns the file that a module is put into; null: it is loaded later, with what needs it */
function partsOf (known: Modules): (module: string) => string | null {
  const { keeper, start, client } = Object.fromEntries(
    Object.entries(PARTS).map(([name, files]) => [name, reachedFrom(files.map((file) =>
      fromTop(`server/${file}`)
    ), known)])
  )
  return (module) => {
    if (keeper.has(module)) return 'keeper'
    if (start.has(module)) return client.has(module) ? 'both' : 'start'
    if (!client.has(module)) return null
    // Masters read the rest with their admin page, and nothing of what commands do.
    return module.startsWith(fromTop('server/cli/')) ? 'client' : 'shared'
  }
}

/** @returns with all that they import, but for what they import later */
function reachedFrom (modules: string[], known: Modules): Set<string> {
  const found = new Set(modules)
  for (const module of found) known.getModuleInfo(module)?.importedIds.forEach((each) => found.add(each))
  return found
}

type Place = {
  /** of the file that is made */
  format: 'esm' | 'cjs',
  /** from that file */
  toScripts: string,
  /** apps run it */
  isOfApps: boolean,
  /** gets all that are read */
  modules: Set<string>
}

function ownPlugin (place: Place): Plugin {
  return { name: 'own', resolveId: placeOf, load: (module) => textOf(module, place), generateBundle () {
    for (const module of this.getModuleIds()) place.modules.add(module)
  } }
}

/**
 * Parts of Node are required: where an ES module imports one, Node reads all that it exports, and so loads what nobody
 * has asked for. For node:http that is Node's own client for fetch and WebSocket, as large as all of ours.
 */
function placeOf (name: string, importer: string | undefined, { kind }: { kind: string }) {
  const part = name.startsWith('node:') ? name : `node:${name}`
  const isOfFile = path.isAbsolute(importer ?? '')
  if (isOfFile && (LATER.includes(part) || (part === name && kind === 'import-statement')))
    return { id: BUILTIN + part }
  if (part === name) return { id: name, external: true }
  return NATIVE.includes(name) ? { id: name, external: true } : null
}

/** Null: as it is on the disk */
async function textOf (module: string, place: Place): Promise<LoadResult> {
  if (module.startsWith(BUILTIN))
    return { code: builtinText(module.slice(BUILTIN.length), place), moduleType: 'js' }
  if (NEVER_READ.test(module)) return { code: 'module.exports = null', moduleType: 'js' }
  if (isPackage(module) || !/\.(ts|cjs)$/.test(module)) return null
  const file = path.relative(ROOT, module)
  return {
    code: Object.hasOwn(OTHERWISE, file)
      ? OTHERWISE[file](place)
      : withPlaces(await readFile(module, 'utf8'), file, place),
    moduleType: module.endsWith('.ts') ? 'ts' : 'js'
  }
}

/** With a getter for each export, a part of Node is read when it is first used. */
function builtinText (name: string, { isOfApps }: Place) {
  const part = `require(${JSON.stringify(name)})`
  if (isOfApps || !LATER.includes(name)) return `module.exports = ${part}`
  const names = Object.keys(process.getBuiltinModule(name) as object)
  return `for (const name of ${
    JSON.stringify(names)
  }) Object.defineProperty(exports, name, { enumerable: true, get: () => ${part}[name] })`
}

/** What a module reads is where it is in each installation. `file`: from the top. */
function withPlaces (text: string, file: string, { format, toScripts }: Place) {
  const here = format === 'esm'
    ? 'import.meta.url'
    : 'process.getBuiltinModule(\'node:url\').pathToFileURL(__filename).href'
  return text.replaceAll(FILE_BESIDE,
    (_, beside) => `new URL('${toScripts}../${path.join(path.dirname(file), beside)}', import.meta.url)`).replaceAll(
      'import.meta.url',
      here
    )
}

/**
 * V8 keeps a source with any character beyond Latin-1 in twice as many bytes. Only texts and regular expressions have
 * such characters here, and may have them escaped.
 */
function textOfChunk ({ fileName, code }: Chunk) {
  return /\.c?js$/.test(fileName)
    ? code.replace(/[^\0-\x7f]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
    : code
}

function fromTop (file: string) {
  return path.join(ROOT, file)
}

function isPackage (file: string) {
  return file.includes(`${path.sep}node_modules${path.sep}`)
}

/** `sources`: absolute */
function write ({ chunks, scripts, licences }: { chunks: Chunk[], scripts: Chunk[], licences: string },
  sources: string[])
{
  const name = createHash('sha256').update(chunks.map(({ fileName, code }) => `${fileName}\n${code}`).sort().join('\n'))
    .digest('hex').slice(0, 12)
  const folder = path.join(DIST, name)
  // What is there may be in use.
  if (!existsSync(folder)) writeFolder(folder, chunks)
  for (const chunk of scripts) replaceFile(chunk.fileName, textOfChunk(chunk))
  replaceFile('licences.txt', licences)
  replaceFile('index.js', `export * from './${name}/index.cjs'\n`)
  replaceFile('bundle.json',
    JSON.stringify({ name,
      sources: Object.fromEntries(sources.sort().map((file) => [path.relative(ROOT, file), statSync(file).size])) }))
  const others = readdirSync(DIST, { withFileTypes: true }).filter((entry) =>
    entry.isDirectory() && entry.name !== name
  ).map((entry) => path.join(DIST, entry.name))
  const newestFirst = others.map((each) => ({ each, at: statSync(each).mtimeMs })).sort((one, other) =>
    other.at - one.at
  )
  for (const { each } of newestFirst.slice(KEPT - 1)) rmSync(each, { recursive: true, force: true })
}

function replaceFile (name: string, text: string) {
  const unfinished = path.join(DIST, `${name}-${process.pid}`)
  writeFileSync(unfinished, text)
  renameSync(unfinished, path.join(DIST, name))
}

function writeFolder (folder: string, chunks: Chunk[]) {
  const unfinished = `${folder}-${process.pid}`
  mkdirSync(path.join(unfinished, 'pages'), { recursive: true })
  for (const chunk of chunks) writeFileSync(path.join(unfinished, chunk.fileName), textOfChunk(chunk))
  try {
    renameSync(unfinished, folder)
  } catch (error) {
    // Somebody has made the same at the same time.
    if (!existsSync(folder)) throw error
    rmSync(unfinished, { recursive: true })
  }
}
