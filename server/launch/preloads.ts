import { splitOption } from './node-options.ts'

/** Options of node that load code of the user's before the program. */
const PRELOADS = new Set(['-r', '--require', '--import', '--loader', '--experimental-loader'])
/** A word, as Node reads NODE_OPTIONS: spaces alone part them, but not in double quotes. */
const WORDS = /(?:"(?:\\[^]|[^"\\])*"?|[^ "])+/g

/** What Yarn has written for Plug'n'Play: it lets packages be read from their archives, and runs nothing else. */
const PLUG_AND_PLAY = /(^|\/)\.pnp\.c?js$/

/** `nodeOptions`: a value of NODE_OPTIONS @returns without the code that it loads; the rest as it was said */
export function withoutPreloads (nodeOptions: string): string {
  const options = optionsOf(wordsOf(nodeOptions), unquoteWord)
  const kept = options.filter(({ loads }) => loads === null)
  return kept.length === options.length ? nodeOptions : kept.flatMap(({ said }) => said).join(' ')
}

/** `nodeOptions`: a value of NODE_OPTIONS @returns as of `plugAndPlayFirst`; without it, the rest is as it was said */
export function plugAndPlayFirstOf (nodeOptions: string): { first: string, rest: string } {
  const { first, rest } = plugAndPlayFirst(wordsOf(nodeOptions), unquoteWord)
  return { first: first.join(' '), rest: first.length === 0 ? nodeOptions : rest.join(' ') }
}

/**
 * Node 20 takes the functions of `fs` when it loads its first ES module, and Plug'n'Play puts others in their place: it
 * has to come before anything that is one, ours included. `words`: options of node. Returns `first`: those that load
 * Plug'n'Play.
 */
export function plugAndPlayFirst (words: readonly string[],
  read?: (word: string) => string): { first: string[], rest: string[] }
{
  const options = optionsOf(words, read)
  const isFirst = ({ loads }: typeof options[0]) => loads !== null && PLUG_AND_PLAY.test(loads)
  return { first: options.filter(isFirst).flatMap(({ said }) => said),
    rest: options.filter((option) => !isFirst(option)).flatMap(({ said }) => said) }
}

/** @returns as they were said */
function wordsOf (nodeOptions: string): string[] {
  return nodeOptions.match(WORDS) ?? []
}

/** @returns `loads`: code of the user's, before the program */
function optionsOf (words: readonly string[],
  read: (word: string) => string = (word) => word): { said: string[], loads: string | null }[]
{
  const options = []
  for (let at = 0; at < words.length; at++) {
    const [name, inner] = splitOption(read(words[at]))
    const isPreload = PRELOADS.has(name.replaceAll('_', '-'))
    const said = isPreload && inner === undefined ? words.slice(at, at + 2) : [words[at]]
    at += said.length - 1
    options.push({ said, loads: isPreload ? inner ?? read(said[1] ?? '') : null })
  }
  return options
}

function unquoteWord (word: string) {
  return word.replace(/"((?:\\[^]|[^"\\])*)"?/g, (_, text) => text.replace(/\\([^])/g, '$1'))
}
