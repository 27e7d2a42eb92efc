/**
 * One script of a module and of all that it imports, so that a page asks once. A module runs once in a page, whichever of
 * its scripts comes first, so that all of them have the same clock. It knows the imports and exports of our own
 * files in public/, and no others: by name, each at the beginning of a line.
 */

const IMPORT = /^import (?:(?:(\w+)|\{([^}]*)\}) from )?'\.\/([\w.-]+)'$/gm
const EXPORT = /^export (?=(?:async )?(?:function|const|class) (\w+))/gm
const NOT_BUNDLED = /^(?:import|export)\b.*/m
/** Of types, and the reasons for them: nobody reads these in a browser. */
const DOCUMENTATION = /\/\*\*.*?\*\/ *\n?/gs
/** Our texts do not go on in a next line. */
const INDENTATION = /\n\s+/g
const LINE_COMMENT = /^ *\/\/.*\n/gm

/** The end of a module that a package has minified. */
const EXPORTS = /\bexport\s*\{([^}]*)\};?/

/**
 * A classic script of a module that imports nothing, as packages minify it.
 * @param {string} source
 * @param {string} name one of its exports, a variable of every page from then on
 * @throws {Error} where the module has no such export
 */
export function classicScript (source, name) {
  const [, all] = EXPORTS.exec(source) ?? []
  const own = (all ?? '').split(',').map((each) => each.trim().split(' as ')).find((words) => words.at(-1) === name)?.[0]
  if (own === undefined) throw new Error(`expected an export called ${name}`)
  return `var ${name} = (() => {\n${source.replace(EXPORTS, '')}\nreturn ${own}\n})()`
}

/**
 * @param {string} entry a name
 * @param {(name: string) => string} read the source of a module
 * @param {Readonly<Record<string, string>>} [libraries] by name the variable that a classic script makes: the default of its import
 * @returns {string} the source of a module that imports nothing
 */
export function bundle (entry, read, libraries = {}) {
  /** @type {Map<string, string>} the variable of each module, those first that others need */
  const variables = new Map()
  /** @type {Map<string, string[]>} the names of each */
  const exports = new Map()
  const parts = ['const modules = globalThis.modules ??= {}']
  add(entry)
  const names = exports.get(entry) ?? []
  if (names.length > 0) parts.push(`export const { ${names.join(', ')} } = ${variables.get(entry)}`)
  return parts.join('\n')

  function add (/** @type {string} */ name) {
    if (variables.has(name)) return
    const source = read(name)
    const body = Object.hasOwn(libraries, name) ? `${source}\nreturn { default: ${libraries[name]} }` : bodyOf(name, source)
    variables.set(name, `module${variables.size}`)
    parts.push(`const ${variables.get(name)} = modules['${name}'] ??= (() => {\n${body}\n})()`)
  }

  /** @param {string} name @param {string} source */
  function bodyOf (name, source) {
    const code = source.replace(DOCUMENTATION, '').replace(LINE_COMMENT, '')
    const names = /** @type {string[]} */ ([])
    const body = code.replace(IMPORT, (_all, main, named, from) => {
      add(from)
      if (main) return `const { default: ${main} } = ${variables.get(from)}`
      return named ? `const {${named.replaceAll(' as ', ': ')}} = ${variables.get(from)}` : ''
    }).replace(EXPORT, (_all, exported) => {
      names.push(exported)
      return ''
    })
    exports.set(name, names)
    const odd = NOT_BUNDLED.exec(body)
    if (odd) throw new Error(`${name}: expected imports and exports as of the other files, received ${odd[0]}`)
    return `${body.replace(INDENTATION, '\n')}return { ${names.join(', ')} }`
  }
}
