/**
 * Puts a module and all that it imports into one script, so that a page asks once. A module runs once in a page, even
 * if several scripts hold it, so that all of them share one clock. Only the imports and exports of our own files in
 * public/ are understood: by name, each at the beginning of a line.
 */

const IMPORT = /^import (?:(?:(\w+)|\{([^}]*)\}) from )?["']\.\/([\w.-]+)["'];?$/gm
const EXPORT = /^export (?=(?:async )?(?:function|const|class) (\w+))/gm
const NOT_BUNDLED = /^(?:import|export)\b.*/m
/**
 * `entry`: a name; `read`: the source of a module; `libraries`: by module name, the global variable of a
 * classic script, which becomes the default import; `held`: modules that a script has which runs before this one in
 * every page. Returns `source`: a module that imports nothing; `modules`: all that run with it.
 */
export function joinModules (entry: string, read: (name: string) => string,
  { libraries = {}, held = new Set() }: { libraries?: Readonly<Record<string, string>>, held?: ReadonlySet<string> } =
    {}): { source: string, modules: ReadonlySet<string> }
{
  /** the variable of each module; a module comes after those that it imports */
  const variables: Map<string, string> = new Map()
  /** names of the exports of each module */
  const exports: Map<string, string[]> = new Map()
  const parts = ['const modules = globalThis.modules ??= {}']
  addModule(entry)
  const names = exports.get(entry) ?? []
  if (names.length > 0) parts.push(`export const { ${names.join(', ')} } = ${variables.get(entry)}`)
  return { source: parts.join('\n'), modules: new Set(variables.keys()) }

  function addModule (name: string) {
    if (variables.has(name)) return
    if (held.has(name)) return addHeld(name)
    const source = read(name)
    const body = Object.hasOwn(libraries, name)
      ? `${source}\nreturn { default: ${libraries[name]} }`
      : bodyOf(name, source)
    variables.set(name, `module${variables.size}`)
    parts.push(`const ${variables.get(name)} = modules['${name}'] ??= (() => {\n${body}\n})()`)
  }

  function addHeld (name: string) {
    variables.set(name, `module${variables.size}`)
    parts.push(`const ${variables.get(name)} = modules['${name}']`)
  }

  function bodyOf (name: string, source: string) {
    const names: string[] = []
    const body = source.replace(IMPORT, (_all, main, named, from) => {
      addModule(from)
      if (main) return `const { default: ${main} } = ${variables.get(from)}`
      return named ? `const {${named.replaceAll(' as ', ': ')}} = ${variables.get(from)}` : ''
    }).replace(EXPORT, (_all, exported) => {
      names.push(exported)
      return ''
    })
    exports.set(name, names)
    const odd = NOT_BUNDLED.exec(body)
    if (odd) throw new Error(`${name}: expected imports and exports as of the other files, received ${odd[0]}`)
    return `${body}\nreturn { ${names.join(', ')} }`
  }
}

/**
 * The module of a package is smaller than its classic script, which is written for older browsers. `module`: without
 * imports; `name`: of an export, which becomes a global variable.
 */
export function toClassicScript (module: string, name: string) {
  const exported = new RegExp(`\\bexport\\{.*?([\\w$]+) as ${name}\\b.*?\\};?`)
  if (!exported.test(module)) throw new Error(`expected a module that exports ${name}`)
  return `(() => {${module.replace(exported, (_all, local) => `globalThis.${name}=${local}`)}\n})()`
}
