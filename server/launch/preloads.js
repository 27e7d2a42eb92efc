import { splitOption } from './node-options.js'

/** Options of node that load code of the user's before the program. */
const PRELOADS = new Set(['-r', '--require', '--import', '--loader', '--experimental-loader'])
/** A word, as Node reads NODE_OPTIONS: spaces alone part them, but not in double quotes. */
const WORDS = /(?:"(?:\\[^]|[^"\\])*"?|[^ "])+/g

/**
 * @param {string} nodeOptions  a value of NODE_OPTIONS
 * @returns {string} without the code that it loads; the rest as it was said
 */
export function withoutPreloads (nodeOptions) {
  const kept = []
  const words = nodeOptions.match(WORDS) ?? []
  for (let at = 0; at < words.length; at++) {
    const [name, value] = splitOption(unquoted(words[at]))
    if (!PRELOADS.has(name.replaceAll('_', '-'))) kept.push(words[at])
    else if (value === undefined) at++
  }
  return kept.length === words.length ? nodeOptions : kept.join(' ')
}

/** @param {string} word */
function unquoted (word) {
  return word.replace(/"((?:\\[^]|[^"\\])*)"?/g, (_, text) => text.replace(/\\([^])/g, '$1'))
}
