/**
 * The schemas of an operation take more room than the rest of it. Sites that are alike share those of the first.
 * @typedef {import('./endpoint.js').Operation} Operation
 * @typedef {ReturnType<typeof createSchemaPool>} SchemaPool
 */

const SCHEMAS = /** @type {const} */ (['path', 'headers', 'query', 'body', 'shownBody', 'answer', 'others'])

export function createSchemaPool () {
  /** By the name of the operation. @type {Map<string, Partial<Operation>>} */
  const known = new Map()

  return {
    /** @param {readonly import('./openapi.js').Mount[]} mounts whose operations get the schemas of the first ones */
    share (mounts) {
      for (const { groups } of mounts) for (const { resources } of Object.values(groups)) for (const resource of Object.values(resources)) Object.values(resource).forEach(shareOne)
    }
  }

  /** @param {Operation} operation */
  function shareOne (operation) {
    const first = known.get(operation.name)
    if (first) Object.assign(operation, first)
    else known.set(operation.name, Object.fromEntries(SCHEMAS.filter((key) => operation[key] !== undefined).map((key) => [key, operation[key]])))
  }
}
