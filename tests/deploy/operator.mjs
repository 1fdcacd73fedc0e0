// Validates objects of the Prometheus operator: a JSON list of objects on standard input, a JSON list of what is wrong on
// standard output. The schemas are those that the package makes from the types of the operator.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.TEST_SCHEMAS, "x.js"));
const models = require.resolve("@kubernetes-models/prometheus-operator/package.json").replace(/package\.json$/, "");
const problems = [];
for (const object of JSON.parse(readFileSync(0, "utf8"))) {
  const file = join(models, "monitoring.coreos.com", "v1", `${object.kind}.js`);
  const { [object.kind]: Model } = await import(pathToFileURL(file));
  try {
    new Model(object).validate();
  } catch (error) {
    problems.push(`${object.kind} ${object.metadata?.name}: ${error.message}`);
  }
}
console.log(JSON.stringify(problems));
