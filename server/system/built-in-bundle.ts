// In a bundle this takes the place of built.ts and of admin/site-code.ts. A package manager may take the files of a
// running master away, or put files of another version there. So all that a master may want later is in one file, which
// the master holds open.
import { existsSync, openSync, readSync } from 'node:fs'
import { createRequire } from 'node:module'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { compileFunction } from 'node:vm'
import type * as built from './built.ts'

/** `places`: where files begin, from the end of this list, and how many bytes they have */
type Pack = { places: Record<string, [from: number, bytes: number]>, site: string[] }

/** As build/bundle.ts writes the length of the list at the beginning of the file. */
export const LENGTH_BYTES = 12
const require = createRequire(import.meta.url)

let held: Pack & { fd: number, start: number } | null = null
/** What was loaded of the pack, by the name of its file */
const loaded: Map<string, { exports: object }> = new Map()

/** Global variables of zod: what zod keeps there would keep all that was loaded together with zod. */
const OF_ZOD = ['__zod_globalConfig', '__zod_globalRegistry']
const globals: Record<string, unknown> = globalThis

const DIST = new URL('../../dist/', import.meta.url)

export const WORKER_CODE = beside('worker.cjs')

export const scriptPath: typeof built.scriptPath = (file) => fileURLToPath(new URL(file, DIST))

export const holdFiles: typeof built.holdFiles = () => {
  if (held) return
  const fd = openSync(beside('pack'), 'r')
  const length = Number(read(fd, 0, LENGTH_BYTES))
  held = { ...JSON.parse(read(fd, LENGTH_BYTES, length)), fd, start: LENGTH_BYTES + length }
  for (const module of Object.values(require.cache)) if (module?.filename.startsWith(beside('.'))) outliveFiles(module)
}

/** What a file that is loaded already wants later comes from the pack, once it is no longer beside that file. */
function outliveFiles (module: NodeJS.Module) {
  const own = module.require
  module.require = (name) => {
    const file = heldFile(name)
    return file === null || existsSync(beside(file)) ? Reflect.apply(own, module, [name]) : load(file)
  }
}

export const heldText: typeof built.heldText = (file) => {
  holdFiles()
  const { fd, start, places } = held as NonNullable<typeof held>
  if (!Object.hasOwn(places, file)) throw new Error(`${file} is no part of this version`)
  const [from, bytes] = places[file]
  return read(fd, start + from, bytes)
}

/** One file in each turn of the event loop, as workers may ask for their sockets meanwhile. */
export async function loadSite (): Promise<object> {
  holdFiles()
  const { site } = held as NonNullable<typeof held>
  for (const file of site) {
    await nextTurn()
    load(file)
  }
  return load(site.at(-1) as string)
}

/** Lets V8 collect the code once nobody has a reference to any part of it. */
export function dropSite () {
  loaded.clear()
}

function load (file: string): object {
  const known = loaded.get(file) ?? require.cache[beside(file)]
  if (known) return known.exports
  const module = { exports: {} }
  loaded.set(file, module)
  const ofOthers = OF_ZOD.map((name) => [name, globals[name]] as const)
  for (const name of OF_ZOD) delete globals[name]
  try {
    const run = compileFunction(heldText(file), ['exports', 'require', 'module', '__filename', '__dirname'], {
      filename: beside(file)
    })
    Reflect.apply(run, module.exports, [module.exports, requireOne, module, beside(file), beside('.')])
  } catch (error) {
    // The next attempt begins anew.
    loaded.delete(file)
    throw error
  } finally {
    for (const [name, value] of ofOthers) {
      if (value === undefined) delete globals[name]
      else globals[name] = value
    }
  }
  return module.exports
}

/** `name`: of a part of Node, of a package with native code, or of another file of the bundle */
function requireOne (name: string): object {
  const file = heldFile(name)
  return file === null ? require(name) : load(file)
}

/** Null: the pack has none that is required by this name */
function heldFile (name: string): string | null {
  const file = name.startsWith('./') ? name.slice('./'.length) : ''
  return Object.hasOwn(held?.places ?? {}, file) ? file : null
}

function read (fd: number, from: number, bytes: number): string {
  const content = Buffer.alloc(bytes)
  if (readSync(fd, content, 0, bytes, from) < bytes) throw new Error(`${beside('pack')} is cut off`)
  return content.toString()
}

function beside (file: string): string {
  return fileURLToPath(new URL(file, import.meta.url))
}
