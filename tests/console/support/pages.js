// Every page there is, for tests that hold for all of them.

/** Pages that anybody with a role may see something on; ids come from what the test has put into the service. */
export const pages = ({ submission, decision, incident, rule }) => [
  "/console/submissions",
  "/console/submissions?status=blocked_inline&sort=name&order=asc&page_size=10",
  "/console/submissions?text=nothing-is-called-this",
  ...(submission ? [`/console/submissions/${submission}`] : []),
  "/console/decisions",
  ...(decision ? [`/console/decisions/${decision}`] : []),
  "/console/playground",
  "/console/incidents",
  ...(incident ? [`/console/incidents/${incident}`] : []),
  "/console/incidents/rules",
  "/console/policy",
  "/console/rules",
  ...(rule ? [`/console/rules/${rule}`] : []),
];

/** What can be done to a submission. */
export const ACTIONS = ["override", "rescan", "retry", "delete", "archive", "restore"];

/** A well-formed id of nothing. */
export const NOBODY = "01890000-0000-7000-8000-000000000000";
