//! `intercept`: one call of an interception hook; the exit code is the decision.

mod arguments;
mod literal;
mod show;

use serde::Serialize;

use arguments::Wanted;
pub(super) use arguments::{InterceptArguments, System};

use super::context::Context;
use super::interception::Interception;
use super::{Exit, Failure, Output, remote};

/// Runs the command.
pub(super) fn run(
    arguments: &InterceptArguments,
    context: &Context,
    output: &mut Output,
) -> Result<Exit, Failure> {
    let wanted = arguments.wanted(context)?;
    let interception = match &arguments.server {
        Some(url) => Interception::over(remote::connect(url, context)?),
        None => Interception::here(context, arguments.policy_path.as_deref())?,
    };
    let decision = match wanted {
        Wanted::Tool(request) => {
            let response = interception.tool(request.clone())?;
            told(&response, arguments.json, output, |output| show::tool(&request, &response, output))?;
            response.decision()
        }
        Wanted::Message(request) => {
            let response = interception.message(request.clone())?;
            told(&response, arguments.json, output, |output| show::message(&request, &response, output))?;
            response.decision()
        }
        Wanted::Params(request) => {
            let response = interception.params(request.clone())?;
            told(&response, arguments.json, output, |output| show::params(&request, &response, output))?;
            response.decision()
        }
    };
    Ok(Exit::Decided(remote::decision_of(decision)))
}

/// Prints an answer in the form that was asked for.
fn told(
    response: &impl Serialize,
    as_json: bool,
    output: &mut Output,
    show: impl FnOnce(&mut Output),
) -> Result<(), Failure> {
    if as_json {
        return output.json(response);
    }
    show(output);
    Ok(())
}
