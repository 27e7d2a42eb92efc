import { extname } from 'node:path'
import { createRequire, register } from 'node:module'

const IS_TYPESCRIPT = /\.(ts|cts|tsx)$/
const COMPILERS = /(^|\s)(-r|--require)[ =]\S*(ts-?node|swc|esbuild|sucrase|babel)/

/**
 * With `--import`, by which workers get their own part, Node reads the app's file as a module, past what `--require` has
 * put into `require()`. An entry that such a compiler is for goes there all the same.
 * @param {string} entry @param {string} flags of node, as one text
 */
export function requireEntry (entry, flags) {
  const isCompiled = IS_TYPESCRIPT.test(entry) && COMPILERS.test(flags) && extname(entry) in createRequire(import.meta.url).extensions
  if (isCompiled) register(import.meta.url)
}

/**
 * The hook itself, which Node calls in a thread of its own.
 * @public
 * @param {string} url @param {unknown} context @param {(url: string, context: unknown) => unknown} next
 */
export function load (url, context, next) {
  // Without a source Node asks require() for it.
  return url.startsWith('file:') && IS_TYPESCRIPT.test(url) ? { format: 'commonjs', source: null, shortCircuit: true } : next(url, context)
}
